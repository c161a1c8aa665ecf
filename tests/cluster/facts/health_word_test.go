package facts

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/workload"
)

// KEP-4680 announces PermanentlyUnhealthy. While a server refuses it, a newer kubelet's whole status of the Pod is refused with it.
func TestAHealthWordThatTheServerDoesNotKnowIs422AndTheStatusStays(t *testing.T) {
	namespace := whole.Namespace(t)
	fakenode.Start(t, whole, fakenode.Spec{Plugin: map[string][]string{gpu: {"gpu-0"}}})
	pod := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1, Resource: gpu}.Create(t, whole)[0]
	say := func(word string) error {
		patch := fmt.Appendf(nil, `{"status":{"containerStatuses":[{"name":"main","image":"i","imageID":"i","ready":true,"restartCount":0,`+
			`"allocatedResourcesStatus":[{"name":%q,"resources":[{"resourceID":"gpu-0","health":%q}]}]}]}}`, gpu, word)
		_, err := whole.Client.CoreV1().Pods(namespace).Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	}
	err := say("PermanentlyUnhealthy")
	if !isStatus(err, http.StatusUnprocessableEntity) || !strings.Contains(err.Error(), "allocatedResourcesStatus[0].resources[0].health") ||
		!strings.Contains(err.Error(), `Unsupported value: "PermanentlyUnhealthy"`) {
		t.Errorf("the word is answered with %v", err)
	}
	now, err := whole.Client.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, health := workload.Device(*now); health != corev1.ResourceHealthStatusHealthy {
		t.Errorf("the status says %q", health)
	}
	if err := say("Unknown"); err != nil {
		t.Errorf("the same with a word that it knows: %v", err)
	}
}

// It is put into etcd past the API server, as a newer one leaves it behind that is rolled back.
func TestAPodWithAHealthWordThatTheServerDoesNotKnowIsServedAndCannotBeEvicted(t *testing.T) {
	namespace := whole.Namespace(t)
	fakenode.Start(t, whole, fakenode.Spec{Plugin: map[string][]string{gpu: {"gpu-0"}}})
	pod := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1, Resource: gpu}.Create(t, whole)[0]
	pods := whole.Client.CoreV1().Pods(namespace)
	stored, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored.APIVersion, stored.Kind, stored.ResourceVersion = "v1", "Pod", ""
	stored.Status.ContainerStatuses[0].AllocatedResourcesStatus[0].Resources[0].Health = "PermanentlyUnhealthy"
	if err := whole.Store(t.Context(), "pods", namespace, pod.Name, stored); err != nil {
		t.Fatal(err)
	}
	now, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, health := workload.Device(*now); health != "PermanentlyUnhealthy" {
		t.Errorf("it is served as %q", health)
	}
	if err := evict(t, pod, pod.UID); !isStatus(err, http.StatusUnprocessableEntity) || !strings.Contains(err.Error(), "resources[0].health") {
		t.Errorf("the eviction is answered with %v", err)
	}
	if now := workload.Pods(t, whole, namespace, "infer"); len(now) != 1 || now[0].UID != pod.UID {
		t.Errorf("the Pod has gone: %v", now)
	}
}
