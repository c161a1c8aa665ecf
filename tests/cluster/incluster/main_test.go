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

// records is where both replicas record, as a claim gives it to them: PodSecurity restricted allows no hostPath in a Pod.
func records() string { return filepath.Join(cluster.Folder, "records") }

const claim = `apiVersion: v1
kind: PersistentVolume
metadata: {name: records}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  storageClassName: ""
  claimRef: {namespace: device-health-system, name: records}
  hostPath: {path: "%s", type: Directory}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: device-health-system, name: records}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: records
  resources: {requests: {storage: 1Gi}}
`

// userOverlay is what a user writes who has an image of their own and records.
const userOverlay = `resources: ["%s", records.yaml]
images: [{name: device-health-controller, newName: localhost/device-health-controller, newTag: test}]
patches:
  - target: {kind: Deployment, name: device-health-controller}
    patch: |
      - {op: add, path: /spec/template/spec/containers/0/args/-, value: --record=/var/lib/device-health/records}
      - {op: add, path: /spec/template/spec/containers/0/volumeMounts, value: [{name: records, mountPath: /var/lib/device-health/records}]}
      - {op: add, path: /spec/template/spec/volumes, value: [{name: records, persistentVolumeClaim: {claimName: records}}]}
`

// install applies the overlay as a user does, and waits until both replicas are ready.
func install() error {
	if err := os.Mkdir(records(), 0o755); err != nil {
		return err
	}
	if err := os.Chmod(records(), 0o777); err != nil { // the program's user is nobody's, and no volume of this kind is given to it
		return err
	}
	manifests, err := realcluster.RepositoryFile("manifests/overlays/enforce")
	if err != nil {
		return err
	}
	overlay, err := filepath.Rel(cluster.Folder, manifests)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"kustomization.yaml": fmt.Sprintf(userOverlay, overlay), "records.yaml": fmt.Sprintf(claim, records())} {
		if err := os.WriteFile(filepath.Join(cluster.Folder, name), []byte(text), 0o600); err != nil {
			return err
		}
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
