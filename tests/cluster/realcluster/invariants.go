package realcluster

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ourAgent is how the controller's program calls itself.
const ourAgent = "device-health-controller/"

// nothingOfOurs is the code with which audit-check ends when the log holds no request of the controller's program.
const nothingOfOurs = 3

// checkInvariants holds every write of the controller's program, under whatever account, against the invariants, by the scenarios'
// own checker: build/*/audit-check.
func (cp *ControlPlane) checkInvariants() error {
	if cp.Options.NoController {
		return cp.expectNothingOfOurs()
	}
	program, err := auditCheck()
	if err != nil {
		return err
	}
	arguments := []string{filepath.Join(cp.Logs, "audit.log")}
	if cp.Options.Earlier {
		arguments = append([]string{"--with-0.1.0"}, arguments...)
	}
	output, err := exec.Command(program, arguments...).CombinedOutput()
	code := 0
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		code = ended.ExitCode()
	} else if err != nil {
		return err
	}
	text, err := judged(code, strings.TrimSpace(string(output)), isPartOfTheTests())
	if err == nil {
		say("audit log of %s: %s", cp.Options.Name, text)
	}
	return err
}

// expectNothingOfOurs finds a controller that has spoken where none is said to run, so that nobody judged it.
func (cp *ControlPlane) expectNothingOfOurs() error {
	spoken, err := cp.Audit(time.Time{}, func(e AuditEvent) bool { return strings.HasPrefix(e.UserAgent, ourAgent) })
	if err == nil && len(spoken) > 0 {
		err = fmt.Errorf("%d requests of a controller where none is said to run (NoController)", len(spoken))
	}
	return err
}

// judged is what a run's end has to say of audit-check's answer. A log where nothing is ours proves nothing: the program has not run here,
// or is not recognised. Only where some of the tests alone have run may that be right, and is said.
func judged(code int, output string, part bool) (string, error) {
	switch {
	case code == 0:
		return output, nil
	case code == nothingOfOurs && part:
		return "NOTHING JUDGED: none of the tests that ran had a controller here", nil
	case code == nothingOfOurs:
		return "", fmt.Errorf("it holds no request of the controller: nothing was judged\n%s", output)
	}
	return "", fmt.Errorf("audit-check ended with code %d\n%s", code, output)
}

// isPartOfTheTests says whether this run was told to leave out some of the package's tests.
func isPartOfTheTests() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if found := flag.Lookup(name); found != nil && found.Value.String() != "" {
			return true
		}
	}
	return false
}

// auditCheck is beside $DHC_BINARY, else in build/dev or build/release.
func auditCheck() (string, error) {
	folders := []string{filepath.Dir(os.Getenv("DHC_BINARY"))}
	for _, build := range []string{"dev", "release"} {
		folder, err := RepositoryFile("build/" + build)
		if err != nil {
			return "", err
		}
		folders = append(folders, folder)
	}
	for _, folder := range folders {
		if path, err := filepath.Abs(filepath.Join(folder, "audit-check")); err == nil {
			if info, err := os.Stat(path); err == nil && !info.IsDir() {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("there is no audit-check to judge the controller's requests: cmake --build --preset dev --target audit-check")
}
