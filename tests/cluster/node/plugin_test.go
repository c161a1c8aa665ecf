package node

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

func TestADeadPluginIsCalledSilentWithin70SecondsAndNoMoreWhenItIsBack(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 2)
	pods := two(t, namespace, plugin.Resource)
	controller := watchOver(t, namespace, atOnce)
	plugin.Kill(t)
	plugin.AwaitCapacity(t, 2, 0)
	expectWithin70Seconds(t, controller, awaitVerdict(t, controller, 0, node.Name, "SilentPlugin", plugin.Resource))
	plugin.Start(t)
	plugin.AwaitCapacity(t, 2, 2)
	awaitNoVerdict(t, controller, time.Minute, node.Name, "SilentPlugin", plugin.Resource)
	for _, pod := range pods {
		story.ExpectUntouched(t, controller, pod)
	}
}

// expectWithin70Seconds compares when the controller saw the node's numbers change with when it spoke: what the kubelet takes is not ours.
func expectWithin70Seconds(t *testing.T, controller story.Run, said dhc.Verdict) {
	t.Helper()
	since, err := time.Parse(time.RFC3339Nano, said.Since)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range controller.Log(t) {
		if line["msg"] != "verdict" || line["reason"] != said.Reason || line["device"] != said.Device {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(line["ts"]))
		if took := at.Sub(since); err != nil || took < time.Minute || took > 70*time.Second {
			t.Errorf("%s was said %s after the numbers changed (%v)", said.Reason, took, err)
		}
		return
	}
	t.Errorf("the log says nothing of %s", said.Reason)
}

func TestADeviceThatVanishesFromThePluginsListIsNamedOnItsNode(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 4)
	pods := two(t, namespace, plugin.Resource)
	controller := watchOver(t, namespace, atOnce)
	plugin.Remove(t, deviceOf(t, pods[0]))
	plugin.AwaitCapacity(t, 3, 3)
	expectWithin70Seconds(t, controller, awaitVerdict(t, controller, 0, node.Name, "DeviceVanished", plugin.Resource))
	for _, pod := range pods {
		awaitHealth(t, pod, "Healthy") // which is why only the node's numbers tell
		story.ExpectUntouched(t, controller, pod)
	}
}

func TestAFullNodeWithOneDeviceProperlyUnhealthyHasNoSilentPlugin(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 2)
	pods := two(t, namespace, plugin.Resource)
	controller := watchOver(t, namespace, policy{Rest: "after: 0s"}) // and no eviction
	plugin.Set(t, deviceOf(t, pods[0]), "Unhealthy")
	plugin.AwaitCapacity(t, 2, 1)
	story.AwaitCondition(t, cluster, pods[0], corev1.ConditionTrue)
	realcluster.Never(t, 75*time.Second, "the plugin is not called silent", func() error {
		if v := verdict(t, controller, node.Name, "SilentPlugin", plugin.Resource); v != nil {
			t.Fatalf("%+v", v)
		}
		return nil
	})
}

func TestADeviceThatFlapsIsNotActedOnBeforeItHasBeenUnhealthyForAfterWithoutABreak(t *testing.T) {
	t.Parallel()
	const after = 60 * time.Second
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 3)
	pods := two(t, namespace, plugin.Resource)
	controller := watchOver(t, namespace, policy{Rest: "after: 60s\nevict: {after: 0s}"})
	sick := pods[0]
	bad := deviceOf(t, sick)
	seen := story.WatchPod(t, cluster, sick)
	// Twice a second for ten seconds, which is the story and not a wait. The kubelet looks once a second, or less often when it is busy, and
	// may see hardly any of it.
	for range 20 {
		for _, health := range []string{"Unhealthy", "Healthy"} {
			plugin.Set(t, bad, health)
			time.Sleep(250 * time.Millisecond)
		}
	}
	// And then so that it sees each change.
	for range 3 {
		for _, health := range []corev1.ResourceHealthStatus{"Healthy", "Unhealthy"} {
			plugin.Set(t, bad, string(health))
			awaitHealth(t, sick, health)
		}
	}
	plugin.Set(t, bad, "Healthy")
	awaitHealth(t, sick, "Healthy")
	plugin.Set(t, bad, "Unhealthy")
	story.AwaitReplacement(t, cluster, sick, 2)
	evicted := controller.EvictedAt(t, sick)
	if shown := changes(seen); shown < 6 {
		t.Errorf("the API server showed only %d changes of health: that was no flapping", shown)
	}
	var healthy time.Time
	for _, version := range seen.Versions() {
		if _, health := workload.Device(*version.Pod); health == "Healthy" && kubeletWrote(version.Pod).Before(evicted) {
			healthy = kubeletWrote(version.Pod)
		}
	}
	if evicted.Before(healthy.Add(after)) {
		t.Errorf("evicted %s after the API server last showed it Healthy", evicted.Sub(healthy))
	}
	story.ExpectEvictedOnce(t, controller, sick)
}

// kubeletWrote is when the kubelet last wrote the Pod's status, by the API server's clock, in whole seconds, rounded down.
func kubeletWrote(pod *corev1.Pod) (at time.Time) {
	for _, entry := range pod.ManagedFields {
		if entry.Manager == "kubelet" && entry.Subresource == "status" && entry.Time != nil {
			at = entry.Time.Time
		}
	}
	return at
}

// changes of the device's health that the API server has shown.
func changes(seen *story.Watched) (count int) {
	last := corev1.ResourceHealthStatus("")
	for _, version := range seen.Versions() {
		if _, health := workload.Device(*version.Pod); health != last && health != "" {
			count, last = count+1, health
		}
	}
	return count
}

func TestRecoveryBeforeAfterLeavesNoTrace(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 3)
	pods := two(t, namespace, plugin.Resource)
	controller := watchOver(t, namespace, policy{Rest: "after: 150s\nevict: {after: 0s}"})
	sick, bad := pods[0], deviceOf(t, pods[0])
	plugin.Set(t, bad, "Unhealthy")
	awaitVerdict(t, controller, 0, sick.Name, "WaitingForWindow", bad)
	plugin.Set(t, bad, "Healthy")
	awaitHealth(t, sick, "Healthy")
	controller.Stays(t, sick, 155*time.Second)
	story.AwaitCondition(t, cluster, sick, "")
}

func TestRecoveryBeforeTheEvictionTurnsTheConditionFalse(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 3)
	pods := two(t, namespace, plugin.Resource)
	controller := watchOver(t, namespace, policy{Rest: "after: 1s\nevict: {after: 150s}"})
	sick, bad := pods[0], deviceOf(t, pods[0])
	plugin.Set(t, bad, "Unhealthy")
	story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
	plugin.Set(t, bad, "Healthy")
	recovered := story.AwaitCondition(t, cluster, sick, corev1.ConditionFalse)
	if recovered.Reason != "Recovered" {
		t.Errorf("the condition's reason is %s", recovered.Reason)
	}
	controller.Stays(t, sick, 155*time.Second)
}
