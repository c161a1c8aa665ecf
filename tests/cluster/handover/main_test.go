// Package handover tells the stories of nodes that are handed over to whoever repairs them.
package handover

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

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
		return dhc.InstallOn(planes)
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
