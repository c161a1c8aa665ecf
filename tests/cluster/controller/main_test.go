// Package controller tells the controller's stories on a real control plane. Each runs our binary as the service account of
// manifests/, with its roles and nothing more.
package controller

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/workload"
)

const gpu = "example.com/gpu"

// The second one answers WatchList with 422, so that our client has to list; its audit log has whole objects.
var cluster, withoutWatchList *realcluster.ControlPlane

func TestMain(m *testing.M) {
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) error {
		cluster, withoutWatchList = planes[0], planes[1]
		return dhc.InstallOn(planes)
	}, realcluster.Options{Name: "stories"}, realcluster.Options{Name: "without-watchlist", FeatureGates: map[string]bool{"WatchList": false}, ReplayAudit: true})
}

func deviceIDs(count int) (ids []string) {
	for i := range count {
		ids = append(ids, fmt.Sprint("gpu-", i))
	}
	return ids
}

// gpus of one node.
func gpus(count int) map[string][]string { return map[string][]string{gpu: deviceIDs(count)} }

// fleet is a node with four plugin devices and a Deployment on two of them.
func fleet(t *testing.T, cp *realcluster.ControlPlane, spec fakenode.Spec) (node *fakenode.Node, namespace string, pods []corev1.Pod) {
	t.Helper()
	namespace = cp.Namespace(t)
	spec.Plugin = gpus(4)
	node = fakenode.Start(t, cp, spec)
	pods = workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 2, Resource: gpu}.Create(t, cp)
	return node, namespace, pods
}
