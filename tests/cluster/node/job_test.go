package node

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// jobNow is the only Job of a namespace.
func jobNow(t *testing.T, namespace string) *batchv1.Job {
	t.Helper()
	list, err := cluster.Client.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d Jobs, %v", len(list.Items), err)
	}
	return &list.Items[0]
}

// expectCredited says that the Job's limit is what it was and one more, for this Pod alone, and that the Job itself says so.
func expectCredited(t *testing.T, namespace string, limit int32, pod corev1.Pod, device string) {
	t.Helper()
	job := jobNow(t, namespace)
	var record struct {
		Limit   int32
		Credits []struct {
			PodUID, Device string
			Limit          int32
		}
	}
	text := job.Annotations["device-health.io/retry-credits"]
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if *job.Spec.BackoffLimit != limit || record.Limit != limit || len(record.Credits) != 1 {
		t.Fatalf("the Job's limit is %d and its record %s", *job.Spec.BackoffLimit, text)
	}
	if c := record.Credits[0]; c.PodUID != string(pod.UID) || c.Limit != limit || !strings.HasSuffix(c.Device, "/"+device) {
		t.Errorf("the credit is %+v", c)
	}
}

// finishes lets the Pod's work end well and waits until the Job is Complete with one loss.
func finishes(t *testing.T, namespace string, pod corev1.Pod) {
	t.Helper()
	node.Signal(t, pod, syscall.SIGUSR2)
	expectComplete(t, namespace, 1, 1)
}

// expectComplete waits until the Job is Complete, and says how many of its Pods have failed and succeeded.
func expectComplete(t *testing.T, namespace string, failed, succeeded int32) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, "the Job is Complete", func() error {
		job := jobNow(t, namespace)
		for _, condition := range job.Status.Conditions {
			if condition.Type == batchv1.JobComplete && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("it is %+v", job.Status)
	})
	if status := jobNow(t, namespace).Status; status.Failed != failed || status.Succeeded != succeeded {
		t.Errorf("%d Pods failed and %d succeeded", status.Failed, status.Succeeded)
	}
}

func TestAJobWithoutARetryEndsCompleteOnAnotherDeviceAndItsLimitWasRaisedOnce(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 2)
	sick := workload.Job{Namespace: namespace, Name: "work", Parallelism: 1, Resource: plugin.Resource}.Create(t, cluster)[0]
	bad := deviceOf(t, sick)
	controller := watchOver(t, namespace, policy{Rest: "after: 0s\njobRetry: {settle: 3s}\nevict: {after: 0s}"})
	plugin.Set(t, bad, "Unhealthy")
	story.AwaitEvent(t, cluster, namespace, sick.Name, "DeviceUnhealthy")
	next := story.AwaitReplacement(t, cluster, sick, 1)[0]
	if device := deviceOf(t, next); device == bad {
		t.Errorf("the replacement is on %s again", bad)
	}
	finishes(t, namespace, next)
	expectCredited(t, namespace, 1, sick, bad)
	story.ExpectEvictedOnce(t, controller, sick)
	expectNoAdmissionError(t, namespace)
}

// expectCreditedDeath waits until the Job "work" of one retry has a second one for the Pod that died of the device, and lets its successor finish.
func expectCreditedDeath(t *testing.T, namespace string, dead, next corev1.Pod, bad string) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, "the Job has its retry back", func() error {
		if limit := *jobNow(t, namespace).Spec.BackoffLimit; limit != 2 {
			return fmt.Errorf("its limit is %d", limit)
		}
		return nil
	})
	story.AwaitEvent(t, cluster, namespace, "work", "DiedOfDevice")
	finishes(t, namespace, next)
	expectCredited(t, namespace, 2, dead, bad)
}

// The kernel kills the process first; only its successor on the same device hears from the driver.
func TestAPodThatItsDeviceKilledBeforeAnyReportIsCreditedAfterwardsAndTheJobEndsComplete(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 1)
	first := workload.Job{Namespace: namespace, Name: "work", Parallelism: 1, BackoffLimit: 1, Resource: plugin.Resource}.Create(t, cluster)[0]
	bad := deviceOf(t, first)
	controller := watchOver(t, namespace, policy{Rest: "after: 30m\njobRetry: {settle: 3s}\nevict: {after: 0s}"})
	node.Signal(t, first, syscall.SIGKILL)
	next := story.AwaitReplacement(t, cluster, first, 1)[0]
	if limit := *jobNow(t, namespace).Spec.BackoffLimit; limit != 1 {
		t.Errorf("without any evidence the limit is %d", limit)
	}
	deviceOf(t, next)
	plugin.Set(t, bad, "Unhealthy")
	awaitVerdict(t, controller, time.Minute, "work", "DiedOfDevice", bad)
	expectCreditedDeath(t, namespace, first, next, bad)
	if sent := controller.Evictions(t, next); len(sent) > 0 {
		t.Errorf("its successor was evicted: %v", sent)
	}
}
