// Package incluster runs the built image on real nodes as manifests/ say it: the Deployment of the overlay enforce with two replicas, under its
// own service account, with a token and an address of the API server that a kubelet gave it. Nothing of it is started by the tests.
package incluster

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/realnode"
)

var (
	cluster *realcluster.ControlPlane
	node    *realnode.Node // which has the devices
)

// image is what tests/image/run leaves: built from the Dockerfile.
const image = "localhost/device-health-controller:test"

func TestMain(m *testing.M) {
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) error {
		cluster = planes[0]
		archive, err := realcluster.RepositoryFile("build/image/device-health-controller.tar")
		if err != nil {
			return err
		}
		if _, err := os.Stat(archive); err != nil {
			return fmt.Errorf("there is no image to run; tests/image/run --only-build makes it: %w", err)
		}
		// Two, as the replicas are to keep apart.
		for _, name := range []string{"node-a", "node-b"} {
			started, err := realnode.Start(cluster, name)
			if err != nil {
				return err
			}
			if err := started.ImportImage(archive); err != nil {
				return err
			}
			if node == nil {
				node = started
			}
		}
		return install()
	}, realcluster.Options{Name: "incluster", Node: true, Network: true})
}

// install applies the overlay as a user does who has an image of their own, and waits until both replicas are ready.
func install() error {
	manifests, err := realcluster.RepositoryFile("manifests/overlays/enforce")
	if err != nil {
		return err
	}
	overlay, err := filepath.Rel(cluster.Folder, manifests)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("resources: [%s]\nimages: [{name: device-health-controller, newName: localhost/device-health-controller, newTag: test}]\n", overlay)
	if err := os.WriteFile(filepath.Join(cluster.Folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		return err
	}
	if _, err := cluster.Kubectl("", "apply", "--server-side", "-k", cluster.Folder); err != nil {
		return err
	}
	if err := rolledOut(); err != nil {
		pods, _ := cluster.Kubectl("", "describe", "pods", "--namespace", dhc.Namespace)
		logs, _ := cluster.Kubectl("", "logs", "--namespace", dhc.Namespace, "--selector", selector, "--tail=40", "--prefix")
		return fmt.Errorf("%w\n%s\n%s", err, pods, logs)
	}
	return nil
}

func rolledOut() error {
	_, err := cluster.Kubectl("", "rollout", "status", "deployment/"+dhc.Account, "--namespace", dhc.Namespace, "--timeout=3m")
	return err
}
