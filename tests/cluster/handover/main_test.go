// Package handover tells the stories of nodes that are handed over to whoever repairs them.
package handover

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/workload"
)

const (
	gpu     = "example.com/gpu"
	manager = "device-health-controller"
)

var cluster *realcluster.ControlPlane

func TestMain(m *testing.M) {
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) error {
		cluster = planes[0]
		if _, err := dhc.Binary(); err != nil {
			return err
		}
		return dhc.Install(cluster)
	}, realcluster.Options{Name: "hand-over"})
}

// fleet is a node with four plugin devices and a Deployment on two of them.
func fleet(t *testing.T) (node *fakenode.Node, namespace string, pods []corev1.Pod) {
	t.Helper()
	namespace = cluster.Namespace(t)
	node = fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{gpu: {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}})
	pods = workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 2, Resource: gpu}.Create(t, cluster)
	return node, namespace, pods
}

// patchNode changes a node as an administrator's tool does.
func patchNode(t *testing.T, node, body string, subresources ...string) {
	t.Helper()
	_, err := cluster.Client.CoreV1().Nodes().Patch(t.Context(), node, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, subresources...)
	must(t, err)
}

func setCondition(t *testing.T, node, kind string, status corev1.ConditionStatus) {
	t.Helper()
	patchNode(t, node, fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q,"reason":"Maintenance"}]}}`, kind, status), "status")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
