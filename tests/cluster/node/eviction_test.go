package node

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

func TestThePodOfABrokenPluginDeviceMovesToAnotherDeviceAndItsNeighbourStays(t *testing.T) {
	t.Parallel()
	for kind, create := range map[string]func(*testing.T, string, string) []corev1.Pod{
		"Deployment": func(t *testing.T, namespace, resource string) []corev1.Pod {
			return workload.Deployment{Namespace: namespace, Name: "work", Replicas: 2, Resource: resource}.Create(t, cluster)
		},
		"Job": func(t *testing.T, namespace, resource string) []corev1.Pod {
			return workload.Job{Namespace: namespace, Name: "work", Parallelism: 2, BackoffLimit: 3, Resource: resource}.Create(t, cluster)
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			namespace := cluster.Namespace(t)
			plugin := node.NewPlugin(t, 3)
			pods := create(t, namespace, plugin.Resource)
			sick, neighbour := pods[0], pods[1]
			bad := deviceOf(t, sick)
			controller := watchOver(t, namespace, atOnce)
			seen := story.WatchPod(t, cluster, sick)
			plugin.Set(t, bad, "Unhealthy")
			story.AwaitEvent(t, cluster, namespace, sick.Name, "DeviceUnhealthy")
			after := story.AwaitReplacement(t, cluster, sick, 2)
			story.AwaitEvent(t, cluster, namespace, sick.Name, "Evicted")
			for _, pod := range after {
				if device, _ := workload.Device(pod); pod.UID != neighbour.UID && device == bad {
					t.Errorf("the replacement %s is on %s again", pod.Name, bad)
				}
			}
			story.ExpectEvictedOnce(t, controller, sick)
			story.ExpectUntouched(t, controller, neighbour)
			expectCondition(t, seen, bad)
			expectEvictedAfterAllocatableFell(t, seen, plugin)
			expectNoAdmissionError(t, namespace)
		})
	}
}
