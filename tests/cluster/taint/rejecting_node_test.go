package taint

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// A kubelet that turns every Pod away, on a node that promises devices: a ReplicaSet feeds it without end, until the taint stands. When
// the kubelet admits again, the taint goes.
func TestANodeThatRejectsOnePodAfterTheOtherIsTaintedUntilItAdmitsAgain(t *testing.T) {
	forget(t, cluster)
	namespace := cluster.Namespace(t)
	resource := "example.com/" + realcluster.Unique("gpu")
	ids := map[string][]string{resource: {"gpu-0", "gpu-1"}}
	rejecting := fakenode.Start(t, cluster, fakenode.Spec{Plugin: ids})
	for _, id := range ids[resource] {
		rejecting.SetHealth(resource, id, "Unhealthy", "") // and its status goes on to promise them
	}
	policy := dhc.Policy{Namespace: namespace, JobRetry: "{blackHole: {rejections: 3, node: NoSchedule}}", Recover: "{healthyFor: 2s, hold: 24h}"}
	controller := story.Start(t, cluster, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, dhc.Account, ""), Policy: policy.Text(), InCluster: true})
	workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1, Resource: resource}.CreateOnly(t, cluster)
	awaitShape(t, cluster, rejecting.Name, key+"=Unhealthy:NoSchedule unschedulable=false")
	controller.AwaitVerdict(t, rejecting.Name, "BlackHoleNode")
	controller.AwaitVerdict(t, rejecting.Name, "Tainted")
	tainted := time.Now()
	good := fakenode.Start(t, cluster, fakenode.Spec{Plugin: ids})
	if pod := workload.AwaitRunning(t, cluster, namespace, "infer", 1)[0]; pod.Spec.NodeName != good.Name {
		t.Errorf("it runs on %s", pod.Spec.NodeName)
	}
	for _, id := range ids[resource] {
		rejecting.SetHealth(resource, id, "Healthy", "")
	}
	realcluster.Eventually(t, 5*time.Second, "a later second", func() error { // a Pod's own time has no smaller part
		if time.Now().Unix() == tainted.Unix() {
			return fmt.Errorf("it is the same")
		}
		return nil
	})
	probe := workload.OneContainer(resource, "", "")
	probe.NodeSelector = map[string]string{"kubernetes.io/hostname": rejecting.Name}
	probe.Tolerations = []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}
	_, err := cluster.Client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: probe}, metav1.CreateOptions{})
	must(t, err)
	awaitShape(t, cluster, rejecting.Name, " unschedulable=false")
	expectNodePatches(t, controller, "patch 200", "patch 200")
}
