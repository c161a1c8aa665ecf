package node

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realnode"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// reporterPod is what a vendor's DaemonSet shows of its driver or plugin: a Pod on the node that mounts folders of the kubelet's. Its process
// and the driver's begin and end together because the story says so.
func reporterPod(t *testing.T, on *realnode.Node, namespace, name string, folders ...string) corev1.Pod {
	t.Helper()
	pod := workload.OneContainer("", "", "")
	pod.NodeSelector = map[string]string{"kubernetes.io/hostname": on.Name}
	for i, folder := range folders {
		kind := corev1.HostPathDirectoryOrCreate
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: fmt.Sprint("folder-", i), VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/kubelet/" + folder, Type: &kind}}})
	}
	_, err := cluster.Client.AppsV1().DaemonSets(namespace).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: workload.Labels(name)},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: workload.Labels(name)}, Spec: pod}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return workload.AwaitRunning(t, cluster, namespace, name, 1)[0]
}

// driverPod is of this driver alone: other stories' drivers are on the node too.
func (b bench) driverPod(t *testing.T) corev1.Pod {
	t.Helper()
	return reporterPod(t, node, b.namespace, "driver", "plugins_registry", "plugins/"+b.driver.Name)
}

// forgets restarts the driver as NVIDIA's does: back within the kubelet's 30 s, with its slices, and every device Healthy.
func (b bench) forgets(t *testing.T, pod corev1.Pod) {
	t.Helper()
	b.driver.Kill(t)
	node.Signal(t, pod, syscall.SIGKILL)
	b.heals(t)
	b.driver.Start(t)
}

func TestADriverThatForgetsInItsRestartHasRepairedNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, "").watched(t, "evict: {after: 1h}\nrecover: {healthyFor: 10s, hold: 75s}")
	driver := b.driverPod(t)
	seen := story.WatchPod(t, cluster, b.sick)
	b.breaks(t)
	opened := story.AwaitCondition(t, cluster, b.sick, corev1.ConditionTrue)
	rule := b.awaitRule(t, nil)
	forgot := time.Now()
	b.forgets(t, driver)
	awaitHealth(t, b.sick, "Healthy")
	b.awaitSays(t, true, "Tainted", "driver pod "+b.namespace+"/"+driver.Name+" started at ")
	b.awaitSays(t, true, "ReporterRestarted", "its Healthy is no evidence of a repair")
	b.controller.Stays(t, b.sick, 40*time.Second) // four times healthyFor
	expectOneIncident(t, seen, opened)
	if now := ruleOf(t, b.driver, b.device); now == nil || now.UID != rule.UID {
		t.Errorf("the rule was %+v and is %+v", rule, now)
	}
	if held := b.awaitUntainted(t, forgot, "held for 75 s (incident 1) without evidence: on probation for 24 h"); held < 75*time.Second {
		t.Errorf("it was held for %s", held)
	}
	story.AwaitCondition(t, cluster, b.sick, corev1.ConditionFalse)
	expectRuleWrites(t, b.controller, rule.Name, "patch 201", "delete 200")
	story.ExpectUntouched(t, b.controller, b.sick)
}

func TestADriverThatCallsItsDeviceBadAgainAfterItsRestartMayCallItHealthy(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, "").watched(t, "recover: {healthyFor: 10s, hold: 24h}")
	driver := b.driverPod(t)
	b.breaks(t)
	rule := b.awaitRule(t, nil)
	b.forgets(t, driver)
	awaitHealth(t, b.sick, "Healthy")
	b.awaitSays(t, true, "Tainted", "is no evidence of a repair")
	b.controller.Stays(t, b.sick, 2*time.Second) // the kubelet cuts the start to its second: a word within that may be older
	b.breaks(t)
	b.awaitSays(t, true, "Tainted", "it is still reported bad")
	repaired := time.Now()
	b.heals(t)
	if took := b.awaitUntainted(t, repaired, "a pod that holds it has reported Healthy for 10 s"); took < 10*time.Second {
		t.Errorf("it was untainted after %s", took)
	}
	expectRuleWrites(t, b.controller, rule.Name, "patch 201", "delete 200")
}
