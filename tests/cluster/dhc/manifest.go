package dhc

import (
	"testing"

	"device-health.io/controller/tests/cluster/realcluster"
)

// HandOver is the component with the right to write conditions of nodes.
const HandOver = "manifests/components/hand-over/rbac-hand-over.yaml"

// Apply applies a manifest of the repository until the test ends.
func Apply(t *testing.T, cp *realcluster.ControlPlane, manifest string) {
	t.Helper()
	path, err := realcluster.RepositoryFile(manifest)
	fatal(t, err)
	if out, err := cp.Kubectl("", "apply", "-f", path); err != nil {
		t.Fatal(out, err)
	}
	t.Cleanup(func() { _, _ = cp.Kubectl("", "delete", "-f", path) })
}
