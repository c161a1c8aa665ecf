package node

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/realnode"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// expectCondition says that the Pod carried our condition before it ended. A Job's Pod is still there, others are not.
func expectCondition(t *testing.T, seen *story.Watched, device string) {
	t.Helper()
	now := seen.Last()
	found := workload.Condition(now, story.Condition)
	if found == nil || found.Status != corev1.ConditionTrue {
		t.Errorf("our condition on the evicted Pod was %+v", found)
	}
	if target := workload.Condition(now, string(corev1.DisruptionTarget)); target == nil || target.Reason != "EvictionByEvictionAPI" {
		t.Errorf("DisruptionTarget on the evicted Pod was %+v", target)
	}
}

// expectEvictedAfterAllocatableFell compares the versions that the kubelet's write and the eviction made: etcd counts them for all
// objects together, and no watch's delay changes them.
func expectEvictedAfterAllocatableFell(t *testing.T, seen *story.Watched, plugin *realnode.Plugin) {
	t.Helper()
	number := func(version string) uint64 {
		n, err := strconv.ParseUint(version, 10, 64)
		if err != nil {
			t.Errorf("version %q: %v", version, err)
		}
		return n
	}
	seen.AwaitDeletion(t)
	realcluster.Eventually(t, 0, "allocatable is seen to have fallen", func() error {
		if plugin.AllocatableReached(2) == "" {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	for _, version := range seen.Versions() {
		if version.Pod.DeletionTimestamp == nil {
			continue
		}
		if evicted, fell := number(version.Pod.ResourceVersion), number(plugin.AllocatableReached(2)); evicted < fell {
			t.Errorf("evicted in version %d, allocatable fell in version %d", evicted, fell)
		}
		return
	}
	t.Error("no version of the Pod was seen to be evicted")
}

// expectNoAdmissionError says that the kubelet turned no Pod away.
func expectNoAdmissionError(t *testing.T, namespace string) {
	t.Helper()
	list, err := cluster.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range list.Items {
		if pod.Status.Reason == "UnexpectedAdmissionError" {
			t.Errorf("%s was turned away: %s", pod.Name, pod.Status.Message)
		}
	}
}

// two Pods of a Deployment, each with a device of the resource.
func two(t *testing.T, namespace, resource string) []corev1.Pod {
	t.Helper()
	return workload.Deployment{Namespace: namespace, Name: "work", Replicas: 2, Resource: resource}.Create(t, cluster)
}

// deviceOf is the plugin device that a Pod holds.
func deviceOf(t *testing.T, pod corev1.Pod) string {
	t.Helper()
	return story.DeviceOf(t, cluster, pod)
}

// draDeviceOf is the device of a Pod's only claim, as the claim itself says it.
func draDeviceOf(t *testing.T, pod corev1.Pod) string {
	t.Helper()
	var device string
	realcluster.Eventually(t, time.Minute, pod.Name+"'s claim is allocated", func() error {
		now, err := cluster.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(now.Status.ResourceClaimStatuses) == 0 || now.Status.ResourceClaimStatuses[0].ResourceClaimName == nil {
			return fmt.Errorf("no claim in %+v", now.Status)
		}
		device, err = allocated(t, pod.Namespace, *now.Status.ResourceClaimStatuses[0].ResourceClaimName)
		return err
	})
	return device
}

func allocated(t *testing.T, namespace, claim string) (device string, err error) {
	t.Helper()
	now, err := cluster.Client.ResourceV1().ResourceClaims(namespace).Get(t.Context(), claim, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if now.Status.Allocation == nil {
		return "", fmt.Errorf("claim %s is not allocated", claim)
	}
	return now.Status.Allocation.Devices.Results[0].Device, nil
}

// verdict of a subject with a reason that speaks of a resource or device; nil if there is none.
func verdict(t *testing.T, r story.Run, subject, reason, about string) *dhc.Verdict {
	t.Helper()
	for _, v := range r.Verdicts(t) {
		if v.Subject.Name == subject && v.Reason == reason && strings.Contains(v.Device, about) {
			return &v
		}
	}
	return nil
}

func awaitVerdict(t *testing.T, r story.Run, limit time.Duration, subject, reason, about string) (found dhc.Verdict) {
	t.Helper()
	realcluster.Eventually(t, limit, fmt.Sprintf("verdict %s on %s about %s", reason, subject, about), func() error {
		v := verdict(t, r, subject, reason, about)
		if v == nil {
			return fmt.Errorf("there is none")
		}
		found = *v
		return nil
	})
	return found
}

func awaitNoVerdict(t *testing.T, r story.Run, limit time.Duration, subject, reason, about string) {
	t.Helper()
	realcluster.Eventually(t, limit, fmt.Sprintf("no verdict %s on %s about %s", reason, subject, about), func() error {
		if v := verdict(t, r, subject, reason, about); v != nil {
			return fmt.Errorf("%+v", v)
		}
		return nil
	})
}

// awaitHealth waits until the kubelet says this of the Pod's device.
func awaitHealth(t *testing.T, pod corev1.Pod, health corev1.ResourceHealthStatus) {
	t.Helper()
	realcluster.Eventually(t, 60*time.Second, fmt.Sprintf("the kubelet calls the device of %s %s", pod.Name, health), func() error {
		now, err := cluster.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if _, said := workload.Device(*now); said != health {
			return fmt.Errorf("it says %q", said)
		}
		return nil
	})
}
