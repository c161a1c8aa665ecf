package realcluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The service account of manifests/ that the controllers of the stories speak for, and what they call themselves.
const (
	ourAccount = "system:serviceaccount:device-health-system:device-health-controller"
	ourAgent   = "device-health-controller/"
)

// checkInvariants holds every write of our account against the invariants, by the scenarios' own checker: build/*/audit-check.
func (cp *ControlPlane) checkInvariants() error {
	writes, err := cp.Audit(time.Time{}, func(e AuditEvent) bool {
		// Tests speak for the account too, to see what it may not do.
		return e.User.Username == ourAccount && strings.HasPrefix(e.UserAgent, ourAgent) && e.Writes()
	})
	if err != nil || len(writes) == 0 {
		return err
	}
	program, err := auditCheck()
	if err != nil {
		return err
	}
	output, err := exec.Command(program, filepath.Join(cp.Logs, "audit.log")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, output)
	}
	say("audit log of %s: %s", cp.Options.Name, strings.TrimSpace(string(output)))
	return nil
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
