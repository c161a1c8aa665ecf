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

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

const trainImage = "registry.test/train:7"

// runOf is the Pod of a new Job with one device and an image; nodes: where it may run, nil: anywhere.
func runOf(t *testing.T, namespace, name, image, device string, nodes map[string]string) corev1.Pod {
	t.Helper()
	return workload.Job{Namespace: namespace, Name: name, Parallelism: 1, BackoffLimit: 3, Resource: device, Change: func(job *batchv1.Job) {
		job.Spec.Template.Spec.Containers[0].Image = image
		job.Spec.Template.Spec.NodeSelector = nodes
	}}.Create(t, cluster)[0]
}

// ninetyWell are three Pods of thirty devices each, none of which breaks.
func ninetyWell(t *testing.T, namespace, device string) []corev1.Pod {
	t.Helper()
	well := workload.OneContainer(device, "", "")
	well.Containers[0].Resources.Limits[corev1.ResourceName(device)] = resource.MustParse("30")
	return workload.StatefulSetOf(t, cluster, namespace, "well", 3, well)
}

// breakUnder breaks the Pod's device and awaits that the Pod is evicted for it.
func breakUnder(t *testing.T, controller story.Run, node *fakenode.Node, device string, pod corev1.Pod) {
	t.Helper()
	node.Break(t, device, story.DeviceOf(t, cluster, pod))
	story.AwaitGone(t, cluster, pod)
	story.ExpectEvictedOnce(t, controller, pod)
}

// Ninety devices are well under another image. Jobs of one image come one after the other, each under a name of its own, and break what they get.
func TestAnImageThatBreaksADeviceUnderEachOfItsJobsIsSuspectedInItsNamespaceAlone(t *testing.T) {
	namespace, elsewhere := cluster.Namespace(t), cluster.Namespace(t)
	device := "example.com/" + realcluster.Unique("gpu")
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{device: deviceIDs(110)}, Termination: time.Second})
	others := ninetyWell(t, namespace, device)
	text := dhc.Policy{Namespace: namespace, Full: "{wait: 0s}"}.Text()
	text = strings.Replace(text, "{matchLabels: {kubernetes.io/metadata.name: "+namespace+"}}",
		fmt.Sprintf("{matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [%s, %s]}]}", namespace, elsewhere), 1)
	controller := story.Start(t, cluster, dhc.Settings{Policy: text})
	for i := range 3 {
		name := fmt.Sprint("run-", i)
		pod := runOf(t, namespace, name, trainImage, device, nil)
		breakUnder(t, controller, node, device, pod)
		background := metav1.DeletePropagationBackground
		if err := cluster.Client.BatchV1().Jobs(namespace).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			t.Fatal(err)
		}
	}
	for _, verdict := range controller.Verdicts(t) {
		if verdict.Reason == "WorkloadSuspected" {
			t.Errorf("after three: %+v", verdict)
		}
	}
	// Without the one that broke most, three are left. What comes later is suspected with the image; the Job under which the last one broke is told.
	words := "image " + trainImage + " in namespace " + namespace + " is suspected of breaking the devices that its containers hold: since "
	for _, name := range []string{"run-3", "run-4"} {
		pod := runOf(t, namespace, name, trainImage, device, nil)
		node.Break(t, device, story.DeviceOf(t, cluster, pod))
		if said := controller.AwaitVerdict(t, pod.Name, "WorkloadSuspected"); !strings.HasPrefix(said.Message, words) || !strings.Contains(said.Message, namespace+"/Job/run-0") {
			t.Errorf("of %+v it says %s", said.Subject, said.Message)
		}
		controller.Stays(t, pod, 3*time.Second)
	}
	if said := controller.AwaitVerdict(t, "run-3", "WorkloadSuspected"); said.Subject.Kind != "Job" || !strings.HasPrefix(said.Message, words) {
		t.Errorf("of %+v it says %s", said.Subject, said.Message)
	}
	story.AwaitEvent(t, cluster, namespace, "run-3", "WorkloadSuspected")
	// Another image there, and the same one elsewhere, are moved as ever.
	for _, pod := range []corev1.Pod{runOf(t, namespace, "other", "registry.test/infer:1", device, nil), runOf(t, elsewhere, "run-0", trainImage, device, nil)} {
		breakUnder(t, controller, node, device, pod)
	}
	for _, other := range others {
		story.ExpectUntouched(t, controller, other)
	}
}
