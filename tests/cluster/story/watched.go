package story

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/workload"
)

// Watched is every version of one Pod that the API server showed, with when.
type Watched struct {
	mutex    sync.Mutex
	versions []Version
	began    corev1.Pod
}

// Version of a Pod.
type Version struct {
	At   time.Time
	Pod  *corev1.Pod
	Gone bool
}

// WatchPod writes down what becomes of a Pod, until the test ends.
func WatchPod(t *testing.T, cp *realcluster.ControlPlane, pod corev1.Pod) *Watched {
	t.Helper()
	stream, err := cp.Client.CoreV1().Pods(pod.Namespace).Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + pod.Name, ResourceVersion: pod.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stream.Stop)
	w := &Watched{began: pod}
	go func() {
		for event := range stream.ResultChan() {
			now, ok := event.Object.(*corev1.Pod)
			if !ok || now.UID != pod.UID {
				continue
			}
			w.mutex.Lock()
			w.versions = append(w.versions, Version{time.Now(), now, event.Type == watch.Deleted})
			w.mutex.Unlock()
		}
	}()
	return w
}

// AwaitDeletion waits until the end of the Pod has been seen to begin: the watch may be a moment behind.
func (w *Watched) AwaitDeletion(t *testing.T) {
	t.Helper()
	realcluster.Eventually(t, 0, w.began.Name+" is seen to end", func() error {
		for _, version := range w.Versions() {
			if version.Pod.DeletionTimestamp != nil {
				return nil
			}
		}
		return fmt.Errorf("in none of its versions")
	})
}

// AwaitCondition waits until the Pod has been seen with this condition, be it gone again.
func (w *Watched) AwaitCondition(t *testing.T, kind string, status corev1.ConditionStatus) {
	t.Helper()
	realcluster.Eventually(t, 0, fmt.Sprintf("%s is seen with %s %s", w.began.Name, kind, status), func() error {
		for _, version := range w.Versions() {
			if found := workload.Condition(version.Pod, kind); found != nil && found.Status == status {
				return nil
			}
		}
		return fmt.Errorf("in none of its versions")
	})
}

// Versions seen so far.
func (w *Watched) Versions() []Version {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return append([]Version(nil), w.versions...)
}

// Health lists the changes of the Pod's device's health and of our condition, for the log of a test.
func (w *Watched) Health() (lines []string) {
	last := ""
	for _, version := range w.Versions() {
		_, health := workload.Device(*version.Pod)
		now := fmt.Sprintf("pod: %s, condition %v", health, workload.Condition(version.Pod, Condition))
		if condition := workload.Condition(version.Pod, Condition); condition != nil {
			now = fmt.Sprintf("pod: %s, condition %s %s since %s", health, condition.Status, condition.Reason, condition.LastTransitionTime.UTC().Format(time.TimeOnly))
		}
		if now != last {
			last = now
			lines = append(lines, version.At.Format(time.StampMilli)+" "+now)
		}
	}
	return lines
}

// Last is the Pod's last version.
func (w *Watched) Last() *corev1.Pod {
	if all := w.Versions(); len(all) > 0 {
		return all[len(all)-1].Pod
	}
	return &w.began
}
