package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// reads are the answers to the controller's reads of objects of that resource.
func reads(t *testing.T, r story.Run, resource string) int {
	t.Helper()
	return len(r.Requests(t, func(e realcluster.AuditEvent) bool { return e.Verb == "get" && e.ObjectRef.Resource == resource }))
}

func TestAnOwnerOfAKindThatIsNotWatchedKeepsItsPodsByOptOutAndAnotherDoesNot(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(4), Termination: time.Second})
	ray := workload.CustomKind{Group: "ray.io", Kind: "RayCluster"}
	ray.Create(t, cluster)
	kept := ray.Own(t, cluster, namespace, "kept", gpu, "device-health.io/opt-out=true")
	moved := ray.Own(t, cluster, namespace, "moved", gpu)
	// The account of manifests/: the aggregated role is what lets it read RayClusters.
	settings := dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, dhc.Account, ""), Policy: unbraked(namespace)}
	controller := story.Start(t, cluster, settings)
	for _, pod := range []corev1.Pod{kept, moved} {
		device, _ := workload.Device(pod)
		node.Break(t, gpu, device)
	}
	story.AwaitGone(t, cluster, moved)
	story.ExpectEvictedOnce(t, controller, moved)
	held := controller.AwaitVerdict(t, kept.Name, "OptedOut")
	if want := `device-health.io/opt-out: "true" on its RayCluster kept`; held.Message != want {
		t.Errorf("it says %q", held.Message)
	}
	controller.Stays(t, kept, 5*time.Second)
	if count := reads(t, controller, "rayclusters"); count != 2 {
		t.Errorf("two owners were read %d times", count)
	}
	// A new process reads anew, and the owner has changed its mind.
	controller.Kill()
	if _, err := cluster.Kubectl("", "annotate", "-n", namespace, "rayclusters.ray.io", "kept", "device-health.io/opt-out-"); err != nil {
		t.Fatal(err)
	}
	story.Start(t, cluster, settings)
	story.AwaitGone(t, cluster, kept)
}

// unbraked lets both of two devices fail at once.
func unbraked(namespace string) string {
	return strings.Replace(dhc.Policy{Namespace: namespace}.Text(), "perOwner: 10}", "perOwner: 10}\n  brake: {percent: 100, atLeast: 100}", 1)
}
