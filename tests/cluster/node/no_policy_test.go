package node

import (
	"strings"
	"testing"
	"time"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/realnode"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

func TestARealDeviceWhoseWordsNoPolicyMatchesIsSeenUntilOneDoes(t *testing.T) {
	t.Parallel()
	realcluster.Needs(t, realcluster.HealthMessages)
	const words = "critical XID 79 reported by NVML"
	namespace := cluster.Namespace(t)
	driver := node.NewDriver(t, realnode.DriverOptions{Devices: 3})
	sick := workload.Deployment{Namespace: namespace, Name: "work", Replicas: 1, ClaimTemplate: workload.DeviceClass(t, cluster, namespace, driver.Name)}.Create(t, cluster)[0]
	bad := draDeviceOf(t, sick)
	controller := watchOver(t, namespace, policy{Match: "drivers: [" + driver.Name + "]\nmessage: 'Xid (48|79|95)'", Rest: taintAndEvict})
	driver.Set(t, bad, realnode.DRADevice{Health: "Unhealthy", Message: words})
	said := awaitVerdict(t, controller, time.Minute, sick.Name, "NoPolicy", bad)
	if said.Policy == "" || said.Message != "no policy matches this Unhealthy device; the nearest is "+said.Policy+`, but its message /Xid (48|79|95)/ does not match "`+words+`"` {
		t.Errorf("the verdict is %+v", said)
	}
	controller.Stays(t, sick, 3*time.Second)
	story.AwaitCondition(t, cluster, sick, "")
	story.ExpectEvents(t, cluster, namespace)
	watchOver(t, namespace, policy{Match: "drivers: [" + driver.Name + `]` + "\n" + `message: '(?i)\bcritical XID [0-9]+\b'`, Rest: taintAndEvict})
	for _, pod := range story.AwaitReplacement(t, cluster, sick, 1) {
		if device := draDeviceOf(t, pod); device == bad {
			t.Errorf("the replacement %s is on %s again", pod.Name, bad)
		}
	}
	story.ExpectEvictedOnce(t, controller, sick)
	awaitNoVerdict(t, controller, time.Minute, sick.Name, "NoPolicy", "")
}

func TestARealPluginDeviceThatNoPolicyMatchesNamesTheSelectorThatFailed(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 3)
	pods := two(t, namespace, plugin.Resource)
	sick := pods[0]
	bad := deviceOf(t, sick)
	controller := watchOver(t, namespace, policy{Match: "resources: [" + plugin.Resource + "]\npodSelector: {matchLabels: {tier: training}}", Rest: "after: 0s\nevict: {after: 0s}"})
	plugin.Set(t, bad, "Unhealthy")
	said := awaitVerdict(t, controller, time.Minute, sick.Name, "NoPolicy", bad)
	if said.Policy == "" || !strings.HasSuffix(said.Message, "the nearest is "+said.Policy+", but its podSelector asks for tier in (training), and the pod has no such label") {
		t.Errorf("the verdict is %+v", said)
	}
	controller.Stays(t, sick, 3*time.Second)
	story.ExpectUntouched(t, controller, pods[1])
	story.ExpectEvents(t, cluster, namespace)
}
