package facts

import (
	"encoding/json"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/workload"
)

const notice = "device-health.io/notice"

// applyStatus applies the condition, and the annotation if there are words for it, to the Pod's status.
func applyStatus(t *testing.T, pod corev1.Pod, uid types.UID, words string, conditions ...any) error {
	t.Helper()
	meta := map[string]any{"name": pod.Name, "namespace": pod.Namespace, "uid": uid}
	if words != "" {
		meta["annotations"] = map[string]string{notice: words}
	}
	body := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": map[string]any{"conditions": conditions}}
	patch, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	_, err = whole.Client.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: "witness"}, "status")
	return err
}

func TestAnApplyToTheStatusWritesAnAnnotationWithTheConditionAndTakesBothBack(t *testing.T) {
	namespace := whole.Namespace(t)
	fakenode.Start(t, whole, fakenode.Spec{})
	pod := workload.Deployment{Namespace: namespace, Name: "train", Replicas: 1}.Create(t, whole)[0]
	unhealthy := map[string]any{"type": condition, "status": "True", "reason": "Test", "lastTransitionTime": "2026-01-01T00:00:00Z"}
	seen := func() (string, bool) {
		now, err := whole.Client.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range now.Status.Conditions {
			if one.Type == condition {
				return now.Annotations[notice], true
			}
		}
		return now.Annotations[notice], false
	}
	if err := applyStatus(t, pod, pod.UID, "first", unhealthy); err != nil {
		t.Fatal(err)
	}
	if words, has := seen(); words != "first" || !has {
		t.Fatalf("annotation %q, condition %v", words, has)
	}
	if err := applyStatus(t, pod, "00000000-0000-0000-0000-000000000000", "other", unhealthy); !isStatus(err, http.StatusUnprocessableEntity) {
		t.Errorf("with another Pod's UID: %v", err)
	}
	if err := applyStatus(t, pod, pod.UID, ""); err != nil {
		t.Fatal(err)
	}
	if words, has := seen(); words != "" || has {
		t.Errorf("annotation %q, condition %v", words, has)
	}
}

func TestAnAnnotationThatAnotherClientHasChangedIs409ForAnApplyAndKeepsTheConditionOutToo(t *testing.T) {
	namespace := whole.Namespace(t)
	fakenode.Start(t, whole, fakenode.Spec{})
	pod := workload.Deployment{Namespace: namespace, Name: "train", Replicas: 1}.Create(t, whole)[0]
	forged := []byte(`{"metadata":{"annotations":{"` + notice + `":"forged"}}}`)
	if _, err := whole.Client.CoreV1().Pods(namespace).Patch(t.Context(), pod.Name, types.MergePatchType, forged, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	unhealthy := map[string]any{"type": condition, "status": "True", "reason": "Test", "lastTransitionTime": "2026-01-01T00:00:00Z"}
	if err := applyStatus(t, pod, pod.UID, "ours", unhealthy); !isStatus(err, http.StatusConflict) {
		t.Fatalf("with the annotation: %v", err)
	}
	if err := applyStatus(t, pod, pod.UID, "", unhealthy); err != nil {
		t.Fatal(err)
	}
	now, err := whole.Client.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if now.Annotations[notice] != "forged" {
		t.Errorf("annotation %q", now.Annotations[notice])
	}
}
