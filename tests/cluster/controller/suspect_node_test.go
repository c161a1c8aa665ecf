package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// Ninety devices are well on another node. One node, too large for a brake of its own, breaks a device under each Job that it gets, whatever that runs: it is named, and that moves nobody.
func TestANodeThatBreaksADeviceUnderEachOfItsJobsIsNamedAndNothingMore(t *testing.T) {
	namespace := cluster.Namespace(t)
	device := "example.com/" + realcluster.Unique("gpu")
	ids := func(count int) (ids []string) {
		for i := range count {
			ids = append(ids, fmt.Sprint("gpu-", i))
		}
		return ids
	}
	fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{device: ids(90)}, Termination: time.Second})
	well := workload.OneContainer(device, "", "")
	well.Containers[0].Resources.Limits[corev1.ResourceName(device)] = resource.MustParse("30")
	others := workload.StatefulSetOf(t, cluster, namespace, "well", 3, well)
	bad := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{device: ids(20)}, Labels: map[string]string{"bad": namespace}, Termination: time.Second})
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, Full: "{wait: 0s}"}.Text()})
	var pods []corev1.Pod
	for i := range 5 {
		pods = append(pods, workload.Job{Namespace: namespace, Name: fmt.Sprint("run-", i), Parallelism: 1, BackoffLimit: 3, Resource: device, Change: func(job *batchv1.Job) {
			job.Spec.Template.Spec.NodeSelector = map[string]string{"bad": namespace}
			job.Spec.Template.Spec.Containers[0].Image = fmt.Sprintf("registry.test/train-%d:7", i)
		}}.Create(t, cluster)[0])
	}
	breaks := func(pod corev1.Pod) {
		bad.Break(t, device, story.DeviceOf(t, cluster, pod))
		story.AwaitGone(t, cluster, pod)
		story.ExpectEvictedOnce(t, controller, pod)
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
		breaks(pod)
	}
	must(t, named())
	breaks(pods[3])
	said := controller.AwaitVerdict(t, bad.Name, "NodeSuspected")
	if words := "node " + bad.Name + " is suspected of breaking its devices: since "; said.Subject.Kind != "Node" || !strings.HasPrefix(said.Message, words) || !strings.Contains(said.Message, "4 devices of "+device+" broke there under 4 workloads") {
		t.Errorf("of %+v it says %s", said.Subject, said.Message)
	}
	story.AwaitEvent(t, cluster, "default", bad.Name, "NodeSuspected")
	breaks(pods[4]) // neither held nor hastened by it
	for _, other := range others {
		story.ExpectUntouched(t, controller, other)
	}
	// Whoever repairs the node says so.
	_, err := cluster.Client.CoreV1().Nodes().Patch(t.Context(), bad.Name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"device-health.io/acknowledge":%q}}}`, time.Now().UTC().Format(time.RFC3339)), metav1.PatchOptions{})
	must(t, err)
	realcluster.Eventually(t, time.Minute, "nobody is suspected any more", named)
}
