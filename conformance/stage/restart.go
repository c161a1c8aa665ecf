package stage

import (
	"os/exec"
)

// Restart runs the command that restarts the remediator.
func (s *Stage) Restart() {
	if output, err := exec.CommandContext(s.ctx, "sh", "-c", s.RestartCommand).CombinedOutput(); err != nil {
		panic(Ending{Broken, "--restart-command: " + err.Error() + ": " + string(output)})
	}
}
