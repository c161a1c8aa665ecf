package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// revisionLabel is what the real DaemonSet controller calls the template by of which it made a Pod.
const revisionLabel = "controller-revision-hash"

// pluginSet is a device plugin's DaemonSet on the nodes with this label. A new template reaches the nodes that come after it alone.
func pluginSet(t *testing.T, namespace, name string, nodes map[string]string) {
	t.Helper()
	pod, kind := workload.OneContainer("", "", ""), corev1.HostPathDirectoryOrCreate
	pod.NodeSelector = nodes
	pod.Volumes = []corev1.Volume{{Name: "plugins", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/device-plugins", Type: &kind}}}}
	_, err := cluster.Client.AppsV1().DaemonSets(namespace).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: workload.Labels(name)},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
			Template:       corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: workload.Labels(name)}, Spec: pod}},
	}, metav1.CreateOptions{})
	must(t, err)
}

// Ninety devices are well under a plugin's first release. Nodes that join later get its second one, which breaks a device on each of them, under a
// Job of its own each time: the fourth names the revision, and that moves and holds nobody.
func TestAReleaseThatBreaksADeviceOnEachOfItsNodesIsNamedOnItsDaemonSetAndNothingMore(t *testing.T) {
	namespace, vendor := cluster.Namespace(t), cluster.Namespace(t)
	device, label := "example.com/"+realcluster.Unique("gpu"), map[string]string{"plugin": vendor}
	fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{device: deviceIDs(90)}, Labels: label, Termination: time.Second})
	pluginSet(t, vendor, "plugin", label)
	first := workload.AwaitRunning(t, cluster, vendor, "plugin", 1)[0].Labels[revisionLabel]
	others := ninetyWell(t, namespace, device)
	_, err := cluster.Client.AppsV1().DaemonSets(vendor).Patch(t.Context(), "plugin", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"metadata":{"annotations":{"release":"2"}}}}}`), metav1.PatchOptions{})
	must(t, err)
	var nodes []*fakenode.Node
	var pods []corev1.Pod
	for i := range 5 {
		node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{device: deviceIDs(2)}, Labels: label, Termination: time.Second})
		nodes = append(nodes, node)
		pods = append(pods, runOf(t, namespace, fmt.Sprint("run-", i), fmt.Sprintf("registry.test/train-%d:7", i), device, map[string]string{"kubernetes.io/hostname": node.Name}))
	}
	second := ""
	for _, pod := range workload.AwaitRunning(t, cluster, vendor, "plugin", 6) {
		if pod.Labels[revisionLabel] != first {
			second = pod.Labels[revisionLabel]
		}
	}
	dhc.WriteConfigMap(t, cluster, dhc.Policy{Namespace: namespace, Full: "{wait: 0s}"}.Text())
	controller := story.Start(t, cluster, dhc.Settings{})
	named := func() error {
		for _, verdict := range controller.Verdicts(t) {
			if strings.HasSuffix(verdict.Reason, "Suspected") {
				return fmt.Errorf("%+v", verdict)
			}
		}
		return nil
	}
	for i := range 3 { // 5 of 95 devices are under it: of three that break, chance takes them all from it too often
		breakUnder(t, controller, nodes[i], device, pods[i])
	}
	must(t, named())
	breakUnder(t, controller, nodes[3], device, pods[3])
	said := controller.AwaitVerdict(t, "plugin", "DriverSuspected")
	if said.Subject.Kind != "DaemonSet" || said.Subject.Namespace != vendor {
		t.Errorf("it is said of %+v", said.Subject)
	}
	for _, words := range []string{second, "4 devices of " + device, "on 4 nodes"} {
		if second == "" || !strings.Contains(said.Message, words) {
			t.Errorf("it does not say %q: %s", words, said.Message)
		}
	}
	if strings.Contains(said.Message, first) {
		t.Errorf("the release on the ninety's node is named: %s", said.Message)
	}
	event := story.AwaitEvent(t, cluster, vendor, "plugin", "DriverSuspected")
	if event.Regarding.Kind != "DaemonSet" || event.Type != corev1.EventTypeWarning || !strings.Contains(event.Note, second) {
		t.Errorf("the Event is %+v", event)
	}
	breakUnder(t, controller, nodes[4], device, pods[4]) // neither held nor hastened by it
	for _, other := range append(others, workload.AwaitRunning(t, cluster, vendor, "plugin", 6)...) {
		story.ExpectUntouched(t, controller, other)
	}
	if evicted := controller.EvictedIn(t, namespace); evicted != len(pods) {
		t.Errorf("%d pods were evicted", evicted)
	}
	for _, write := range controller.Writes(t) {
		if what := write.ObjectRef.Resource; what == "daemonsets" || what == "nodes" || what == "devicetaintrules" || write.ObjectRef.Namespace == vendor && what != "events" {
			t.Errorf("it has written: %s %s/%s", write.Verb, what, write.ObjectRef.Name)
		}
	}
	// Nobody vouches for a release by an annotation of its own: an operator releases the caps.
	_, err = cluster.Client.CoreV1().ConfigMaps(dhc.Namespace).Patch(t.Context(), dhc.ConfigMap, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"device-health.io/cap-release":%q}}}`, time.Now().UTC().Format(time.RFC3339)), metav1.PatchOptions{})
	must(t, err)
	realcluster.Eventually(t, time.Minute, "nobody is suspected any more", named)
}
