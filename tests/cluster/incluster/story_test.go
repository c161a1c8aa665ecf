package incluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

func TestTheOverlaysReplicasRunApartUnderPodSecurityRestrictedWithWhatTheKubeletGaveThem(t *testing.T) {
	cluster.ExplainFailure(t)
	namespace, err := cluster.Client.CoreV1().Namespaces().Get(t.Context(), dhc.Namespace, metav1.GetOptions{})
	if err != nil || namespace.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Errorf("%v %v", namespace.Labels, err)
	}
	expectApart(t)
	for _, pod := range replicas(t) {
		if pod.Spec.Containers[0].Image != image || pod.Spec.ServiceAccountName != dhc.Account || pod.Spec.HostNetwork {
			t.Errorf("%s is not the image of the Dockerfile under its own account: %+v", pod.Name, pod.Spec)
		}
		for _, status := range pod.Status.ContainerStatuses {
			if !status.Ready || status.RestartCount != 0 {
				t.Errorf("%s: ready %t, %d restarts", pod.Name, status.Ready, status.RestartCount)
			}
		}
		// It was given no kubeconfig, so that its requests are with the token, the authority and the address of the kubelet.
		if run := strings.Join(pod.Spec.Containers[0].Args, " "); strings.Contains(run, "kubeconfig") || !strings.Contains(run, "--mode=enforce") {
			t.Errorf("%s runs %s", pod.Name, run)
		}
	}
}

// Story a of the node suite: a device-plugin device breaks.
func TestThePodOfABrokenDeviceMovesToAnotherDeviceAndItsNeighbourStays(t *testing.T) {
	for kind, create := range map[string]func(*testing.T, string, string) []corev1.Pod{
		"Deployment": func(t *testing.T, namespace, resource string) []corev1.Pod {
			return workload.Deployment{Namespace: namespace, Name: "work", Replicas: 2, Resource: resource}.Create(t, cluster)
		},
		"Job": func(t *testing.T, namespace, resource string) []corev1.Pod {
			return workload.Job{Namespace: namespace, Name: "work", Parallelism: 2, BackoffLimit: 3, Resource: resource}.Create(t, cluster)
		},
	} {
		t.Run(kind, func(t *testing.T) {
			namespace := cluster.Namespace(t)
			plugin := node.NewPlugin(t, 3)
			pods := create(t, namespace, plugin.Resource)
			sick, neighbour := pods[0], pods[1]
			bad := deviceOf(t, sick)
			controller := underPolicy(t, dhc.Policy{Namespace: namespace})
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
			if found := workload.Condition(seen.Last(), story.Condition); found == nil || found.Status != corev1.ConditionTrue {
				t.Errorf("our condition on the evicted Pod was %+v", found)
			}
			expectEvictedAfterAllocatableFell(t, seen, plugin)
			// kubectl logs, as an operator on call reads them: why, about which Pod and device, and what was done.
			who := leader(t)
			expectLine(t, who, map[string]string{"msg": "verdict", "reason": "Evicting", "namespace": namespace, "name": sick.Name, "device": bad})
			expectLine(t, who, map[string]string{"msg": "action", "action": "EvictPod", "outcome": "ok", "namespace": namespace, "name": sick.Name, "what": bad})
			expectReplays(t, sick)
		})
	}
}
