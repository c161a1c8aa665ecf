package dhc

import (
	"testing"

	"device-health.io/controller/tests/cluster/realcluster"
)

// AllowHandOver gives our account the right to write conditions of nodes, as the component does, until the test ends.
func AllowHandOver(t *testing.T, cp *realcluster.ControlPlane) {
	t.Helper()
	component, err := realcluster.RepositoryFile("manifests/components/hand-over/rbac-hand-over.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := cp.Kubectl("", "apply", "-f", component); err != nil {
		t.Fatal(out, err)
	}
	t.Cleanup(func() { _, _ = cp.Kubectl("", "delete", "-f", component) })
}
