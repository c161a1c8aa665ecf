package controller

import (
	"fmt"
	"strings"
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

// Three devices, two in use, one of these bad: allocatable is two, and two are asked for. The third is free all the same.
func TestAFreeDeviceIsAPlaceAlthoughThePodOnTheBadOneStillAsksForItAndNobodyIsWarned(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(3)})
	pods := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 2, Resource: gpu}.Create(t, cluster)
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, After: "3s"}.Text()})
	node.Break(t, gpu, "gpu-0")
	sick := story.Holder(t, pods, "gpu-0")
	story.AwaitReplacement(t, cluster, sick, 2)
	story.AwaitEvent(t, cluster, namespace, sick.Name, "Evicted")
	story.ExpectEvictedOnce(t, controller, sick)
	story.ExpectEvents(t, cluster, namespace, "DeviceUnhealthy", "Evicted")
}

func TestOnAFullClusterTheEvictionWaitsAndANodeThatComesEndsTheWait(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(2)})
	pods := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 2, Resource: gpu}.Create(t, cluster)
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace}.Text()})
	node.Break(t, gpu, "gpu-0")
	sick := story.Holder(t, pods, "gpu-0")
	verdict := controller.AwaitVerdict(t, sick.Name, "NoReplacementDevice")
	if !strings.Contains(verdict.Message, "no node is known to have 1 example.com/gpu free, healthy and untainted (1 node has too few free;") {
		t.Errorf("the verdict says %q", verdict.Message)
	}
	story.AwaitEvent(t, cluster, namespace, sick.Name, "NoReplacementDevice")
	story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
	controller.Stays(t, sick, 5*time.Second)
	other := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(1)})
	replaced := false
	for _, pod := range story.AwaitReplacement(t, cluster, sick, 2) {
		replaced = replaced || pod.Spec.NodeName == other.Name
	}
	if !replaced {
		t.Errorf("no Pod runs on %s", other.Name)
	}
	story.ExpectEvictedOnce(t, controller, sick)
}

// The wait counts from the incident: a controller that is killed again and again neither begins it anew nor cuts it short. Then
// the replacement is Pending, which is what makes an autoscaler add a node.
func TestTheWaitForAPlaceOutlivesTheControllerAndEndsInAPendingPod(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(1)})
	sick := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1, Resource: gpu}.Create(t, cluster)[0]
	settings := dhc.Settings{Policy: dhc.Policy{Namespace: namespace, Full: "{wait: 20s}"}.Text()}
	began := time.Now()
	controller := story.Start(t, cluster, settings)
	node.Break(t, gpu, "gpu-0")
	condition := story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
	controller.AwaitVerdict(t, sick.Name, "NoReplacementDevice")
	for range 2 {
		controller.Kill()
		controller = story.Start(t, cluster, settings).Since(began)
		controller.AwaitVerdict(t, sick.Name, "NoReplacementDevice")
	}
	story.AwaitGone(t, cluster, sick)
	// The condition's time has whole seconds.
	if waited := controller.EvictedAt(t, sick).Sub(condition.LastTransitionTime.Time); waited < 20*time.Second {
		t.Errorf("it was evicted %s after the incident began", waited)
	}
	story.ExpectEvictedOnce(t, controller, sick)
	realcluster.Eventually(t, time.Minute, "its replacement is Pending", func() error {
		list, err := cluster.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, pod := range list.Items {
			if pod.UID != sick.UID && pod.Status.Phase == corev1.PodPending && pod.Spec.NodeName == "" {
				return nil
			}
		}
		return fmt.Errorf("there are %d Pods", len(list.Items))
	})
}
