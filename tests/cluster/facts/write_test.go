package facts

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/workload"
)

const gpu = "example.com/gpu"

func isStatus(err error, code int32) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == code
}

func evict(t *testing.T, pod corev1.Pod, uid types.UID) error {
	return whole.Client.PolicyV1().Evictions(pod.Namespace).Evict(t.Context(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	})
}

func TestAnEvictionBeyondABudgetIs429WithTheBudgetsNameAndNoRetryAfter(t *testing.T) {
	namespace := whole.Namespace(t)
	fakenode.Start(t, whole, fakenode.Spec{})
	pods := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 2}.Create(t, whole)
	workload.Budget(t, whole, namespace, "infer", 2)
	err := evict(t, pods[0], pods[0].UID)
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusTooManyRequests {
		t.Fatalf("evicted: %v", err)
	}
	details := status.Status().Details
	if len(details.Causes) != 1 || details.Causes[0].Type != policyv1.DisruptionBudgetCause || details.RetryAfterSeconds != 0 ||
		details.Causes[0].Message != "The disruption budget infer needs 2 healthy pods and has 2 currently" {
		t.Errorf("details %+v", details)
	}
}

func TestAnEvictionWithAnotherPodsUIDIs409AndThePodStays(t *testing.T) {
	namespace := whole.Namespace(t)
	fakenode.Start(t, whole, fakenode.Spec{})
	pod := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1}.Create(t, whole)[0]
	if err := evict(t, pod, "00000000-0000-0000-0000-000000000000"); !isStatus(err, http.StatusConflict) {
		t.Errorf("evicted: %v", err)
	}
	if now := workload.Pods(t, whole, namespace, "infer"); len(now) != 1 || now[0].UID != pod.UID {
		t.Errorf("the Pod is gone: %v", now)
	}
}

func TestAnEvictedPodIsReplacedByItsReplicaSetOnAnotherDevice(t *testing.T) {
	namespace := whole.Namespace(t)
	node := fakenode.Start(t, whole, fakenode.Spec{Plugin: map[string][]string{gpu: {"gpu-0", "gpu-1"}}})
	pod := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1, Resource: gpu}.Create(t, whole)[0]
	if id, health := workload.Device(pod); id != "gpu-0" || health != "Healthy" {
		t.Fatalf("device %q %s", id, health)
	}
	node.Break(t, gpu, "gpu-0")
	realcluster.Eventually(t, 10*time.Second, "the Pod shows its device Unhealthy and the node lacks one", func() error {
		now := workload.Pods(t, whole, namespace, "infer")
		machine, err := whole.Client.CoreV1().Nodes().Get(t.Context(), node.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		allocatable, capacity := machine.Status.Allocatable[gpu], machine.Status.Capacity[gpu]
		if _, health := workload.Device(now[0]); health != "Unhealthy" || allocatable.Value() != 1 || capacity.Value() != 2 {
			return fmt.Errorf("%s, allocatable %s of %s", health, &allocatable, &capacity)
		}
		return nil
	})
	if err := evict(t, pod, pod.UID); err != nil {
		t.Fatal(err)
	}
	replacement := workload.AwaitRunning(t, whole, namespace, "infer", 1)[0]
	if id, health := workload.Device(replacement); replacement.UID == pod.UID || id != "gpu-1" || health != "Healthy" {
		t.Errorf("replacement %s on %s %s", replacement.Name, id, health)
	}
}

func TestTheSchedulerAvoidsATaintedDRADevice(t *testing.T) {
	namespace := whole.Namespace(t)
	driver := realcluster.Unique("gpu") + ".example.com"
	node := fakenode.Start(t, whole, fakenode.Spec{DRA: map[string][]string{driver: {"gpu-0", "gpu-1"}}})
	if err := node.PublishSlice(t.Context(), driver, fakenode.NoSchedule("gpu-0")); err != nil {
		t.Fatal(err)
	}
	template := workload.DeviceClass(t, whole, namespace, driver)
	pod := workload.Deployment{Namespace: namespace, Name: "train", Replicas: 1, ClaimTemplate: template}.Create(t, whole)[0]
	if id, health := workload.Device(pod); id != driver+"/"+node.Name+"/gpu-1" || health != "Healthy" {
		t.Errorf("device %s %s", id, health)
	}
}

const condition = "device-health.io/DeviceUnhealthy"

func apply(t *testing.T, pod corev1.Pod, uid types.UID) error {
	patch, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": pod.Name, "namespace": pod.Namespace, "uid": uid},
		"status": map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True", "reason": "Test", "lastTransitionTime": "2026-01-01T00:00:00Z"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = whole.Client.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: "witness"}, "status")
	return err
}

func TestAnAppliedPodConditionStaysWhenTheKubeletWritesTheStatus(t *testing.T) {
	namespace := whole.Namespace(t)
	node := fakenode.Start(t, whole, fakenode.Spec{Plugin: map[string][]string{gpu: {"gpu-0"}}})
	pod := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1, Resource: gpu}.Create(t, whole)[0]
	if err := apply(t, pod, pod.UID); err != nil {
		t.Fatal(err)
	}
	node.SetHealth(gpu, "gpu-0", "Unhealthy", "")
	realcluster.Eventually(t, 10*time.Second, "the kubelet's later write is there", func() error {
		now, err := whole.Client.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if _, health := workload.Device(*now); health != "Unhealthy" {
			return fmt.Errorf("health %s", health)
		}
		if workload.Condition(now, condition) == nil {
			t.Fatalf("the condition is lost: %v", now.Status.Conditions)
		}
		return nil
	})
}

func TestAnApplyWithAnotherPodsUIDIs422(t *testing.T) {
	namespace := whole.Namespace(t)
	fakenode.Start(t, whole, fakenode.Spec{})
	pod := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1}.Create(t, whole)[0]
	if err := apply(t, pod, "00000000-0000-0000-0000-000000000000"); !isStatus(err, http.StatusUnprocessableEntity) {
		t.Errorf("applied: %v", err)
	}
}
