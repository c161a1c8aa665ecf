package dhc

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"
)

// Command runs one command of the binary to its end.
func Command(t *testing.T, arguments ...string) (code int, out, err string) {
	t.Helper()
	binary, problem := Binary()
	fatal(t, problem)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, binary, arguments...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if problem := command.Run(); problem != nil && !errors.As(problem, &exit) {
		t.Fatal(problem)
	}
	return command.ProcessState.ExitCode(), stdout.String(), stderr.String()
}
