package node

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/realnode"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// NVIDIA's and Habana's plugins see the kubelet's socket made anew, register again from the same container and call every device Healthy. Nothing of
// their Pod says so: only the node's capacity, which was 0 in between.
func TestAPluginThatForgetsInARestartOfTheKubeletHasRepairedNothing(t *testing.T) {
	own, err := realnode.Start(cluster, realcluster.Unique("node-of-kubelet")) // no other story wants its kubelet to restart
	if err != nil {
		t.Fatal(err)
	}
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := own.NewPlugin(t, 3)
	pod := reporterPod(t, own, namespace, "plugin", "device-plugins")
	sick := workload.Deployment{Namespace: namespace, Name: "work", Replicas: 1, Resource: plugin.Resource}.Create(t, cluster)[0]
	bad := deviceOf(t, sick)
	controller := watchOver(t, namespace, policy{Rest: "after: 0s\ntaint: {}\nevict: {after: 1h}\nrecover: {healthyFor: 10s, hold: 200s}"})
	seen := story.WatchPod(t, cluster, sick)
	plugin.Set(t, bad, "Unhealthy")
	opened := story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)

	if err := own.StopKubelet(); err != nil {
		t.Fatal(err)
	}
	forgot := time.Now()
	plugin.Kill(t)
	plugin.Set(t, bad, "Healthy")
	if err := own.StartKubelet(); err != nil {
		t.Fatal(err)
	}
	plugin.AwaitCapacity(t, 0, 0)
	plugin.Start(t)
	plugin.AwaitCapacity(t, 3, 3)
	awaitHealth(t, sick, "Healthy")
	// Of no plugin is a Healthy believed so soon after its capacity came back; of this one not later either.
	awaitVerdict(t, controller, time.Minute, sick.Name, "WaitingWhileUnknown", plugin.Resource)
	said := awaitVerdict(t, controller, 3*time.Minute, sick.Name, "ReporterRestarted", plugin.Resource)
	for _, words := range []string{"the registration of " + plugin.Resource + " with the kubelet of " + own.Name + " started at ",
		"and has not reported it bad since: its Healthy is no evidence of a repair"} {
		if !strings.Contains(said.Message, words) {
			t.Errorf("it does not say %q: %s", words, said.Message)
		}
	}
	controller.Stays(t, sick, 30*time.Second) // three times healthyFor
	expectOneIncident(t, seen, opened)
	story.AwaitCondition(t, cluster, sick, corev1.ConditionFalse)
	if held := time.Since(forgot); held < 200*time.Second {
		t.Errorf("it was held for %s", held)
	}
	story.ExpectUntouched(t, controller, sick)
	now, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil || now.UID != pod.UID || len(now.Status.ContainerStatuses) != 1 || now.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the plugin's Pod has started again, %v: that would be another story", err)
	}
}
