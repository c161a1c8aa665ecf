package owners

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

const rayNodeType = "ray.io/node-type"

func TestAnEvictedPodOfARayClusterIsMadeAnewAndTheOthersStay(t *testing.T) {
	for _, kind := range []string{"worker", "head"} {
		t.Run(kind, func(t *testing.T) {
			p := newPlace(t)
			ray := workload.RayCluster{Namespace: p.namespace, Name: "ray", Workers: 3, Resource: p.gpu}
			ray.CreateOnly(t, cluster)
			pods := ray.AwaitRunning(t, cluster)
			ofKind := func(pod corev1.Pod) bool { return pod.Labels[rayNodeType] == kind }
			sick := member(t, pods, ofKind)
			before := story.DeviceOf(t, cluster, sick)
			controller := p.start(t, "")
			p.breakUnder(t, sick)
			awaitMembers(t, pods, 3)
			story.ExpectEvictedOnce(t, controller, sick)
			if evicted := controller.EvictedIn(t, p.namespace); evicted != 1 {
				t.Errorf("%d pods were evicted", evicted)
			}
			anew := workload.Pods(t, cluster, p.namespace, "ray")
			made := member(t, anew, func(pod corev1.Pod) bool {
				return ofKind(pod) && !slices.ContainsFunc(pods, func(old corev1.Pod) bool { return old.UID == pod.UID })
			})
			if now := story.DeviceOf(t, cluster, made); now == before {
				t.Errorf("it is on %s again", now)
			}
			realcluster.Eventually(t, time.Minute, "KubeRay calls the cluster ready", func() error {
				if now := ray.Status(t, cluster); now != (workload.RayClusterStatus{State: "ready", ReadyWorkerReplicas: 3}) {
					return fmt.Errorf("it is %+v", now)
				}
				return nil
			})
		})
	}
}
