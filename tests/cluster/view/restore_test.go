package view

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// The device was bad in a future that the restore has taken back. The API server accepts a watch from a version that is still to come
// and says nothing in it: who only goes on watching evicts a Healthy Pod and keeps deleted ones for ever.
func TestAnEtcdRestoredToThePastEvictsNoHealthyPodAndWhatIsGoneLeavesMemory(t *testing.T) {
	t.Parallel()
	cp := restored
	namespace := cp.Namespace(t)
	const gpu = "example.com/gpu"
	node := fakenode.Start(t, cp, fakenode.Spec{Plugin: map[string][]string{gpu: {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}})
	pods := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 2, Resource: gpu}.Create(t, cp)
	healthy := story.Holder(t, pods, "gpu-0")
	if err := cp.SaveEtcd(); err != nil {
		t.Fatal(err)
	}
	const window = 90 * time.Second
	controller := story.Start(t, cp, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, After: window.String()}.Text()})

	// The future that will never have been: a Deployment, a bad device, and versions enough that the past does not catch up.
	lost := workload.Deployment{Namespace: namespace, Name: "lost", Replicas: 1, Resource: gpu}.Create(t, cp)
	node.Break(t, gpu, "gpu-0")
	controller.AwaitVerdict(t, healthy.Name, "WaitingForWindow")
	if err := cp.Spend(t.Context(), namespace, 1000); err != nil {
		t.Fatal(err)
	}
	known := controller.Metric(t, `device_health_objects{kind="Pod"}`)
	version := list(t, cp).ResourceVersion

	if err := cp.RestoreEtcd(func() { node.SetHealth(gpu, "gpu-0", "Healthy", "") }); err != nil {
		t.Fatal(err)
	}
	after := list(t, cp)
	t.Logf("version %s before the restore, %s after it; %v Pods known, %d there", version, after.ResourceVersion, known, len(after.Items))
	controller.AwaitSays(t, "the data went back", `"kind":"Pod"`, "the API server's version is ", ", and was ")
	realcluster.Eventually(t, patience, "what is gone leaves memory", func() error {
		now := list(t, cp)
		if got := controller.Metric(t, `device_health_objects{kind="Pod"}`); got != float64(len(now.Items)) {
			return fmt.Errorf("%v Pods known, %d there", got, len(now.Items))
		}
		for _, pod := range now.Items {
			if pod.UID == lost[0].UID {
				return fmt.Errorf("the restore brought %s along", pod.Name)
			}
		}
		return nil
	})
	if got := controller.Metric(t, `device_health_data_went_back_total{kind="Pod"}`); got < 1 {
		t.Errorf("device_health_data_went_back_total of Pods: %v", got)
	}
	realcluster.Eventually(t, patience, "it is ready again, and says what happened", func() error {
		code, text := controller.Readyz(t)
		if code != http.StatusOK || !strings.Contains(text, "[+]Pod: listed") || !strings.Contains(text, "the data went back: ") {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
	controller.Stays(t, healthy, window+10*time.Second)

	// It works on in the present.
	node.Break(t, gpu, "gpu-0")
	story.AwaitCondition(t, cp, healthy, corev1.ConditionTrue)
	story.AwaitReplacement(t, cp, healthy, 2)
	story.ExpectEvictedOnce(t, controller, healthy)
}

func list(t *testing.T, cp *realcluster.ControlPlane) *corev1.PodList {
	t.Helper()
	all, err := cp.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
