package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
)

// Ninety devices are well on another node. One node, too large for a brake of its own, breaks a device under each Job that it gets, whatever that runs: it is named, and that moves nobody.
func TestANodeThatBreaksADeviceUnderEachOfItsJobsIsNamedAndNothingMore(t *testing.T) {
	namespace := cluster.Namespace(t)
	device := "example.com/" + realcluster.Unique("gpu")
	fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{device: deviceIDs(90)}, Termination: time.Second})
	others := ninetyWell(t, namespace, device)
	bad := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{device: deviceIDs(20)}, Labels: map[string]string{"bad": namespace}, Termination: time.Second})
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, Full: "{wait: 0s}"}.Text()})
	var pods []corev1.Pod
	for i := range 5 {
		pods = append(pods, runOf(t, namespace, fmt.Sprint("run-", i), fmt.Sprintf("registry.test/train-%d:7", i), device, map[string]string{"bad": namespace}))
	}
	named := func() error {
		for _, verdict := range controller.Verdicts(t) {
			if strings.HasSuffix(verdict.Reason, "Suspected") {
				return fmt.Errorf("%+v", verdict)
			}
		}
		return nil
	}
	for _, pod := range pods[:3] {
		breakUnder(t, controller, bad, device, pod)
	}
	must(t, named())
	breakUnder(t, controller, bad, device, pods[3])
	said := controller.AwaitVerdict(t, bad.Name, "NodeSuspected")
	if words := "node " + bad.Name + " is suspected of breaking its devices: since "; said.Subject.Kind != "Node" || !strings.HasPrefix(said.Message, words) || !strings.Contains(said.Message, "4 devices of "+device+" broke there under 4 workloads") {
		t.Errorf("of %+v it says %s", said.Subject, said.Message)
	}
	story.AwaitEvent(t, cluster, "default", bad.Name, "NodeSuspected")
	breakUnder(t, controller, bad, device, pods[4]) // neither held nor hastened by it
	for _, other := range others {
		story.ExpectUntouched(t, controller, other)
	}
	// Whoever repairs the node says so.
	_, err := cluster.Client.CoreV1().Nodes().Patch(t.Context(), bad.Name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"device-health.io/acknowledge":%q}}}`, time.Now().UTC().Format(time.RFC3339)), metav1.PatchOptions{})
	must(t, err)
	realcluster.Eventually(t, time.Minute, "nobody is suspected any more", named)
}
