package node

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

func TestABudgetHoldsTheEvictionUntilItIsLifted(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 3)
	pods := two(t, namespace, plugin.Resource)
	workload.Budget(t, cluster, namespace, "work", 2)
	controller := watchOver(t, namespace, atOnce)
	sick, bad := pods[0], deviceOf(t, pods[0])
	plugin.Set(t, bad, "Unhealthy")
	blocked := awaitVerdict(t, controller, time.Minute, sick.Name, "BlockedByBudget", bad)
	if !strings.Contains(blocked.Message, "work needs 2 healthy pods") {
		t.Errorf("the verdict says %q", blocked.Message)
	}
	if err := cluster.Client.PolicyV1().PodDisruptionBudgets(namespace).Delete(t.Context(), "work", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	story.AwaitReplacement(t, cluster, sick, 2)
	story.ExpectEvictedOnce(t, controller, sick)
	story.ExpectUntouched(t, controller, pods[1])
}

func TestAPodThatIgnoresSIGTERMIsEvictedOnceAndGetsItsWholeGrace(t *testing.T) {
	t.Parallel()
	const grace = 15
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 3)
	sick := workload.Deployment{Namespace: namespace, Name: "work", Replicas: 1, Resource: plugin.Resource, Grace: grace,
		Arguments: []string{"ignore-term"}}.Create(t, cluster)[0]
	controller := watchOver(t, namespace, atOnce)
	bad := deviceOf(t, sick)
	plugin.Set(t, bad, "Unhealthy")
	replacement := story.AwaitReplacement(t, cluster, sick, 1)[0]
	if deviceOf(t, replacement) == bad {
		t.Errorf("the replacement is on %s again", bad)
	}
	realcluster.Eventually(t, (grace+15)*time.Second, "the Pod is gone", func() error {
		if _, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), sick.Name, metav1.GetOptions{}); err == nil {
			return fmt.Errorf("it is still there")
		}
		return nil
	})
	if lasted := time.Since(controller.EvictedAt(t, sick)); lasted < grace*time.Second {
		t.Errorf("it was gone after %s", lasted)
	}
	story.ExpectEvictedOnce(t, controller, sick)
}

func TestAPodThatAFinalizerHoldsGivesItsSlotBackAfterTwoMinutes(t *testing.T) {
	t.Parallel()
	const finalizer = "tests.example.com/held"
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 6)
	pods := workload.Deployment{Namespace: namespace, Name: "work", Replicas: 2, Resource: plugin.Resource, Finalizer: finalizer}.Create(t, cluster)
	t.Cleanup(func() { letGo(namespace) })
	controller := watchOver(t, namespace, atOnce)
	for _, pod := range pods {
		plugin.Set(t, deviceOf(t, pod), "Unhealthy")
	}
	// One incident of an owner at a time: the second waits for the first.
	var first, other corev1.Pod
	realcluster.Eventually(t, time.Minute, "one of the two is evicted", func() error {
		for i, pod := range pods {
			if len(controller.Evictions(t, pod)) > 0 {
				first, other = pod, pods[1-i]
				return nil
			}
		}
		return fmt.Errorf("neither is")
	})
	awaitVerdict(t, controller, time.Minute, other.Name, "OwnerLimit", "")
	realcluster.Eventually(t, 150*time.Second, "the second is evicted although the first is still there", func() error {
		if len(controller.Evictions(t, other)) == 0 {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	story.AwaitReplacement(t, cluster, other, 2)
	if waited := controller.EvictedAt(t, other).Sub(controller.EvictedAt(t, first)); waited < 2*time.Minute {
		t.Errorf("the second was evicted %s after the first", waited)
	}
	awaitVerdict(t, controller, time.Minute, first.Name, "StuckTerminating", "")
	story.ExpectEvictedOnce(t, controller, first)
	story.ExpectEvictedOnce(t, controller, other)
}

func TestAPodThatTheNodeCannotStopIsStuckTwoMinutesAfterItsGrace(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 4) // the scheduler counts the old Pod until it is gone, though its device is no longer allocatable
	pods := two(t, namespace, plugin.Resource)
	controller := watchOver(t, namespace, atOnce)
	sick, bad := pods[0], deviceOf(t, pods[0])
	release := node.HangRuntime(t, sick)
	plugin.Set(t, bad, "Unhealthy")
	// The Deployment has its replacement at once; the old Pod stays.
	story.AwaitReplacement(t, cluster, sick, 2)
	stuck := awaitVerdict(t, controller, 150*time.Second, sick.Name, "StuckTerminating", bad)
	if waited := time.Since(controller.EvictedAt(t, sick)); waited < 2*time.Minute {
		t.Errorf("it was called stuck %s after the eviction: %s", waited, stuck.Message)
	}
	release()
	awaitNoVerdict(t, controller, time.Minute, sick.Name, "StuckTerminating", bad)
	story.ExpectEvictedOnce(t, controller, sick)
	story.ExpectUntouched(t, controller, pods[1])
}

// letGo takes the finalizers away that hold a namespace's Pods.
func letGo(namespace string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	pods, err := cluster.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, pod := range pods.Items {
		_, _ = cluster.Client.CoreV1().Pods(namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	}
}

func TestAPodThatCrashesOnItsBrokenDeviceAgainAndAgainIsMoved(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 3)
	workload.Deployment{Namespace: namespace, Name: "work", Replicas: 1, Resource: plugin.Resource, Arguments: []string{"exit", "1"}}.CreateOnly(t, cluster)
	var sick corev1.Pod
	realcluster.Eventually(t, time.Minute, "CrashLoopBackOff", func() error {
		for _, pod := range workload.Pods(t, cluster, namespace, "work") {
			for _, status := range pod.Status.ContainerStatuses {
				if status.State.Waiting != nil && status.State.Waiting.Reason == "CrashLoopBackOff" {
					sick = pod
					return nil
				}
			}
		}
		return fmt.Errorf("not yet")
	})
	controller := watchOver(t, namespace, atOnce)
	bad := deviceOf(t, sick)
	plugin.Set(t, bad, "Unhealthy")
	realcluster.Eventually(t, time.Minute, "another Pod has another device", func() error {
		for _, pod := range workload.Pods(t, cluster, namespace, "work") {
			if device, _ := workload.Device(pod); pod.UID != sick.UID && device != "" && device != bad {
				return nil
			}
		}
		return fmt.Errorf("not yet")
	})
	story.ExpectEvictedOnce(t, controller, sick)
}

func TestADaemonSetsPodIsLeftWhereItIs(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 2)
	sick := workload.DaemonSet(t, cluster, namespace, "agent", plugin.Resource, node.Name)
	controller := watchOver(t, namespace, atOnce)
	bad := deviceOf(t, sick)
	plugin.Set(t, bad, "Unhealthy")
	awaitVerdict(t, controller, time.Minute, sick.Name, "DaemonSetPod", bad)
	story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
	controller.Stays(t, sick, 8*time.Second)
}

func TestAStaticPodIsLeftWhereItIs(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 2)
	node.StaticPod(t, namespace, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: static, namespace: %s, labels: {app: static}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - {name: main, image: "registry.test/pause:1", resources: {limits: {%s: 1}}}
`, namespace, plugin.Resource))
	sick := workload.AwaitRunning(t, cluster, namespace, "static", 1)[0]
	controller := watchOver(t, namespace, atOnce)
	bad := deviceOf(t, sick)
	plugin.Set(t, bad, "Unhealthy")
	awaitVerdict(t, controller, time.Minute, sick.Name, "MirrorPod", bad)
	controller.Stays(t, sick, 8*time.Second)
}
