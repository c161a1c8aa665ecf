package realcluster

import (
	"fmt"
	"path/filepath"
)

const (
	rayOperator        = "ray-operator"
	rayOperatorPackage = "github.com/ray-project/kuberay/ray-operator"
)

var rayOperatorKinds = copied{"github.com/ray-project/kuberay/ray-operator", "config/crd/bases"}

// startRayOperator starts KubeRay as its manifests do, without the webhooks, which are off there too: they validate and change nothing.
func (cp *ControlPlane) startRayOperator() error {
	kinds := cp.Binaries[rayOperator+"-crds"]
	var files []string
	for _, kind := range []string{"rayclusters", "rayjobs", "rayservices"} { // it ends if it cannot watch all three
		files = append(files, filepath.Join(kinds, "ray.io_"+kind+".yaml"))
	}
	if err := cp.startKinds(files...); err != nil {
		return fmt.Errorf("the kinds of %s: %w", rayOperator, err)
	}
	return cp.startManager(rayOperator, "--enable-leader-election=false", "--metrics-addr=0", "--health-probe-bind-address=0")
}
