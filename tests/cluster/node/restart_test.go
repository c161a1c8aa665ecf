package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// Not beside others: each has controllers of its own, one after the other.
func TestAControllerKilledAtAnyStepAndStartedAgainComesToTheSameEnd(t *testing.T) {
	alone(t)
	settings := func(namespace, after, evictAfter string) dhc.Settings {
		return dhc.Settings{Policy: dhc.Policy{Namespace: namespace, After: after, EvictAfter: evictAfter}.Text()}
	}
	for step, first := range map[string]struct {
		after, evictAfter string // of the first controller: where it is to be killed while it waits, it waits for ever
		reached           func(*testing.T, story.Run, corev1.Pod)
	}{
		"while the window runs": {"1h", "2s", func(t *testing.T, r story.Run, sick corev1.Pod) {
			awaitVerdict(t, r, time.Minute, sick.Name, "WaitingForWindow", "")
		}},
		"when the condition is written": {"2s", "2s", func(t *testing.T, _ story.Run, sick corev1.Pod) {
			story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
		}},
		"while it waits for evict.after": {"2s", "1h", func(t *testing.T, r story.Run, sick corev1.Pod) {
			awaitVerdict(t, r, time.Minute, sick.Name, "WaitingForEvictAfter", "")
		}},
		"when the eviction is granted": {"2s", "2s", func(t *testing.T, r story.Run, sick corev1.Pod) {
			realcluster.Eventually(t, time.Minute, "the Pod is evicted", func() error {
				if r.EvictedIn(t, sick.Namespace) == 0 {
					return fmt.Errorf("not yet")
				}
				return nil
			})
		}},
	} {
		t.Run(step, func(t *testing.T) {
			namespace := cluster.Namespace(t)
			plugin := node.NewPlugin(t, 3)
			pods := workload.Deployment{Namespace: namespace, Name: "work", Replicas: 2, Resource: plugin.Resource, Grace: 3,
				Arguments: []string{"ignore-term"}}.Create(t, cluster)
			sick, neighbour := pods[0], pods[1]
			began := time.Now()
			controller := story.Start(t, cluster, settings(namespace, first.after, first.evictAfter))
			plugin.Set(t, deviceOf(t, sick), "Unhealthy")
			first.reached(t, controller, sick)
			controller.Kill()
			second := story.Start(t, cluster, settings(namespace, "2s", "2s")).Since(began)
			story.AwaitReplacement(t, cluster, sick, 2)
			// Time enough for the second to do it again.
			realcluster.Eventually(t, time.Minute, "the evicted Pod's object is gone", func() error {
				if _, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), sick.Name, metav1.GetOptions{}); err == nil {
					return fmt.Errorf("it is still there")
				}
				return nil
			})
			story.ExpectEvictedOnce(t, second, sick)
			story.ExpectUntouched(t, second, neighbour)
			if granted := second.EvictedIn(t, namespace); granted != 1 {
				t.Errorf("%d evictions were granted in the namespace", granted)
			}
		})
	}
}

func TestAKubeletRestartIsNoRecoveryAndNothingIsEvictedWhileHealthIsUnknown(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := second.NewPlugin(t, 3)
	pods := two(t, namespace, plugin.Resource)
	sick, bad := pods[0], deviceOf(t, pods[0])
	controller := watchOver(t, namespace, policy{Rest: "after: 0s\nevict: {after: 150s}"})
	seen := story.WatchPod(t, cluster, sick)
	plugin.Set(t, bad, "Unhealthy")
	opened := story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
	if err := second.StopKubelet(); err != nil {
		t.Fatal(err)
	}
	if err := second.StartKubelet(); err != nil {
		t.Fatal(err)
	}
	awaitHealth(t, sick, "Healthy") // which is a lie: no plugin has said so
	plugin.AwaitCapacity(t, 0, 0)
	controller.Stays(t, sick, 155*time.Second)
	plugin.Kill(t) // it lived on, but nobody listened to it any more
	back := time.Now()
	plugin.Start(t)
	story.AwaitReplacement(t, cluster, sick, 2)
	if at := controller.EvictedAt(t, sick); at.Before(back) {
		t.Errorf("evicted %s before the plugin was back", back.Sub(at))
	}
	events := append(seen.Health(), plugin.History()...)
	slices.Sort(events)
	t.Logf("what the API server showed:\n%s", strings.Join(events, "\n"))
	expectOneIncident(t, seen, opened)
	story.ExpectEvents(t, cluster, namespace, "DeviceUnhealthy", "NoReplacementDevice", "Evicted")
	story.ExpectEvictedOnce(t, controller, sick)
}
