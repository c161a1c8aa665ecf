package taint

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// driverSet is a DaemonSet that looks as a DRA driver's: its Pods mount the driver's own folder.
func driverSet(t *testing.T, namespace, driver string, nodes int) (pods []corev1.Pod) {
	t.Helper()
	pod, kind := workload.OneContainer("", "", ""), corev1.HostPathDirectoryOrCreate
	pod.NodeSelector = map[string]string{"rolled": driver}
	pod.Volumes = []corev1.Volume{{Name: "plugin", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/plugins/" + driver, Type: &kind}}}}
	everywhere := intstr.FromString("100%")
	all := appsv1.DaemonSetUpdateStrategy{RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &everywhere}}
	_, err := cluster.Client.AppsV1().DaemonSets(namespace).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "driver"},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: workload.Labels("driver")}, UpdateStrategy: all,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: workload.Labels("driver")}, Spec: pod}},
	}, metav1.CreateOptions{})
	must(t, err)
	return workload.AwaitRunning(t, cluster, namespace, "driver", nodes)
}

// A new release of a driver breaks a device on each of three nodes: nothing is tainted and nobody evicted while it is new, each Pod says
// why, and the DaemonSet says it once, with the revision that the real controller gave it.
func TestWhatADriversRollOutBreaksWaitsAndIsSaidOnceOnItsDaemonSet(t *testing.T) {
	forget(t, cluster)
	namespace, driver := cluster.Namespace(t), realcluster.Unique("gpu")+".example.com"
	var nodes []*fakenode.Node
	for range 3 {
		nodes = append(nodes, fakenode.Start(t, cluster, fakenode.Spec{DRA: map[string][]string{driver: {"gpu-0"}}, Labels: map[string]string{"rolled": driver}, Termination: 2 * time.Second}))
	}
	template := workload.DeviceClass(t, cluster, namespace, driver)
	pods := workload.Deployment{Namespace: namespace, Name: "train", Replicas: 3, ClaimTemplate: template}.Create(t, cluster)
	old := driverSet(t, namespace, driver, 3)
	policy := dhc.Policy{Namespace: namespace, After: "1s", Taint: "{device: NoSchedule}"}
	controller := story.Start(t, cluster, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, dhc.Account, ""), Policy: policy.Text(), InCluster: true})
	controller.AwaitReady(t)

	_, err := cluster.Client.AppsV1().DaemonSets(namespace).Patch(t.Context(), "driver", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"metadata":{"annotations":{"release":"bad"}}}}}`), metav1.PatchOptions{})
	must(t, err)
	realcluster.Eventually(t, time.Minute, "every driver's Pod is a new one", func() error {
		for _, pod := range workload.AwaitRunning(t, cluster, namespace, "driver", 3) {
			if pod.Labels["controller-revision-hash"] == old[0].Labels["controller-revision-hash"] {
				return fmt.Errorf("%s is of the old revision", pod.Name)
			}
		}
		return nil
	})
	for i, node := range nodes {
		node.SetHealth(driver, "gpu-0", "Unhealthy", fmt.Sprintf("Xid 31, %d page faults", i))
	}
	for _, pod := range pods {
		if said := controller.AwaitVerdict(t, pod.Name, "DriverRolling"); !strings.Contains(said.Message, "is new") {
			t.Errorf("of %s it says %q", pod.Name, said.Message)
		}
	}
	said := controller.AwaitVerdict(t, "driver", "DriverRolling")
	revision := workload.AwaitRunning(t, cluster, namespace, "driver", 3)[0].Labels["controller-revision-hash"]
	if said.Subject.Kind != "DaemonSet" || !strings.Contains(said.Message, "devices of 3 pods on 3 nodes") || !strings.Contains(said.Message, revision) {
		t.Errorf("of %+v it says %q", said.Subject, said.Message)
	}
	event := story.AwaitEvent(t, cluster, namespace, "driver", "DriverRolling")
	if event.Regarding.Kind != "DaemonSet" || event.Type != corev1.EventTypeWarning {
		t.Errorf("the Event is %+v", event)
	}
	for _, pod := range pods {
		controller.Stays(t, pod, 2*time.Second)
	}
	for _, write := range controller.Writes(t) {
		if write.ObjectRef.Resource != "events" && write.ObjectRef.Resource != "configmaps" {
			t.Errorf("it has written: %s %s/%s", write.Verb, write.ObjectRef.Resource, write.ObjectRef.Name)
		}
	}
	// Rolled back: nothing was ever the matter.
	for _, node := range nodes {
		node.SetHealth(driver, "gpu-0", "Healthy", "")
	}
	realcluster.Eventually(t, time.Minute, "nothing is said any more", func() error {
		for _, verdict := range controller.Verdicts(t) {
			if verdict.Reason == "DriverRolling" {
				return fmt.Errorf("%+v", verdict)
			}
		}
		return nil
	})
}
