package node

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/realnode"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// awaitStartedAgain waits until the kubelet shows that the only container of the Pod has been started again, and says when.
func awaitStartedAgain(t *testing.T, pod corev1.Pod) (at time.Time) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, pod.Name+"'s container is started again", func() error {
		now, err := cluster.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(now.Status.ContainerStatuses) != 1 || now.Status.ContainerStatuses[0].RestartCount == 0 || now.Status.ContainerStatuses[0].State.Running == nil {
			return fmt.Errorf("it is %+v", now.Status.ContainerStatuses)
		}
		at = now.Status.ContainerStatuses[0].State.Running.StartedAt.Time
		return nil
	})
	return at
}

// A device plugin's Pod mounts a folder that all plugins of a node share, so nothing says whose devices it reports on: for ten minutes after it
// is deleted, no incident of any plugin's device opens on its node. So the story has a node of its own, which no other and no earlier run of it uses.
func TestAPluginThatForgetsInItsRestartHasRepairedNothing(t *testing.T) {
	own, err := realnode.Start(cluster, realcluster.Unique("node-of-plugin")) // beside nothing: it takes its time on a busy machine
	if err != nil {
		t.Fatal(err)
	}
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := own.NewPlugin(t, 3) // the others stay well: allocatable is the sign that the plugin is there
	pod := reporterPod(t, own, namespace, "plugin", "device-plugins")
	sick := workload.Deployment{Namespace: namespace, Name: "work", Replicas: 1, Resource: plugin.Resource}.Create(t, cluster)[0]
	bad := deviceOf(t, sick)
	controller := watchOver(t, namespace, policy{Rest: "after: 0s\ntaint: {}\nevict: {after: 1h}\nrecover: {healthyFor: 10s, hold: 75s}"})
	seen := story.WatchPod(t, cluster, sick)
	plugin.Set(t, bad, "Unhealthy")
	opened := story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)

	forgot := time.Now()
	plugin.Kill(t)
	own.Signal(t, pod, syscall.SIGKILL)
	plugin.Set(t, bad, "Healthy")
	started := awaitStartedAgain(t, pod)
	plugin.Start(t)
	awaitHealth(t, sick, "Healthy")
	said := awaitVerdict(t, controller, time.Minute, sick.Name, "ReporterRestarted", plugin.Resource)
	words := "device plugin pod " + namespace + "/" + pod.Name + " started at "
	_, since, named := strings.Cut(said.Message, words)
	if !named || !strings.Contains(said.Message, "and has not reported it bad since: its Healthy is no evidence of a repair") {
		t.Errorf("it says %q, not %q", said.Message, words)
	}
	// By the kubelet's clock, in whole seconds, or when we have seen it.
	if at, err := time.Parse(time.RFC3339Nano, strings.SplitN(since, " ", 2)[0]); err != nil || at.Before(started) || at.After(time.Now()) {
		t.Errorf("it says %q (%v), and the kubelet that it started at %s", said.Message, err, started)
	}
	controller.Stays(t, sick, 40*time.Second) // four times healthyFor
	expectOneIncident(t, seen, opened)
	story.AwaitCondition(t, cluster, sick, corev1.ConditionFalse)
	if held := time.Since(forgot); held < 75*time.Second {
		t.Errorf("it was held for %s", held)
	}
	story.ExpectUntouched(t, controller, sick)
	if now, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{}); err != nil || now.UID != pod.UID {
		t.Errorf("the plugin's Pod is another one, %v: that is a roll-out, and no restart", err)
	}
}
