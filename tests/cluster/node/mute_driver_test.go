package node

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"device-health.io/controller/tests/cluster/realnode"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// A driver that taints its slice and says nothing of health to the kubelet, as NVIDIA's does while its stream is behind a gate.

func TestTheTaintOfADriverThatNeverSpeaksToTheKubeletMovesThePod(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	driver := node.NewDriver(t, realnode.DriverOptions{Devices: 4, Mute: true})
	pods := workload.Deployment{Namespace: namespace, Name: "work", Replicas: 2, ClaimTemplate: workload.DeviceClass(t, cluster, namespace, driver.Name)}.Create(t, cluster)
	sick, neighbour := pods[0], pods[1]
	bad := draDeviceOf(t, sick)
	controller := watchOver(t, namespace, policy{Match: "deviceTaints: [{key: " + driver.Name + "/xid}]", Rest: taintAndEvict})
	driver.Set(t, bad, realnode.DRADevice{Taints: []resourcev1.DeviceTaint{
		{Key: driver.Name + "/xid", Value: "79", Effect: resourcev1.DeviceTaintEffectNoSchedule}}})
	driver.AwaitPublished(t, bad)
	for _, pod := range story.AwaitReplacement(t, cluster, sick, 2) {
		if device := draDeviceOf(t, pod); pod.UID != neighbour.UID && device == bad {
			t.Errorf("the replacement %s is on %s again", pod.Name, bad)
		}
		if _, said := workload.Device(pod); said != "" && said != corev1.ResourceHealthStatusUnknown {
			t.Errorf("the kubelet calls the device of %s %q: the driver is not mute", pod.Name, said)
		}
	}
	if event := story.AwaitEvent(t, cluster, namespace, sick.Name, "DeviceUnhealthy"); !strings.Contains(event.Note, "/xid=79:NoSchedule") {
		t.Errorf("the Event says %s", event.Note)
	}
	story.ExpectEvictedOnce(t, controller, sick)
	story.ExpectUntouched(t, controller, neighbour)
}
