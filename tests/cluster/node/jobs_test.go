package node

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// retries gives a Job's retries back under these rules, and evicts without any wait but settle.
func retries(rules string) policy {
	return policy{Rest: "after: 0s\nevict: {after: 0s}\njobRetry: {" + rules + "}"}
}

// jobName is unique on this machine: an Indexed Job's Pods have no other hostname, and by it their processes are told apart.
func jobName() string { return fmt.Sprintf("%s-%d", realcluster.Unique("work"), os.Getpid()) }

// jobWrites are the answers to all writes on Jobs of a namespace that the controller has tried.
func jobWrites(t *testing.T, r story.Run, namespace string) (codes []int) {
	t.Helper()
	for _, e := range r.Requests(t, func(e realcluster.AuditEvent) bool {
		return e.Writes() && e.ObjectRef.Resource == "jobs" && e.ObjectRef.Namespace == namespace
	}) {
		codes = append(codes, e.Response.Code)
	}
	return codes
}

// awaitLimit waits until the Job's backoffLimit is this.
func awaitLimit(t *testing.T, namespace string, limit int32) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, fmt.Sprintf("the Job's backoffLimit is %d", limit), func() error {
		if now := *jobNow(t, namespace).Spec.BackoffLimit; now != limit {
			return fmt.Errorf("it is %d", now)
		}
		return nil
	})
}

// creditedPods are the UIDs that the Job's record names, each of them once.
func creditedPods(t *testing.T, namespace string) map[string]bool {
	t.Helper()
	var record struct {
		Credits []struct{ PodUID string }
	}
	text, pods := jobNow(t, namespace).Annotations["device-health.io/retry-credits"], map[string]bool{}
	if text == "" {
		return pods
	}
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	for _, credit := range record.Credits {
		if pods[credit.PodUID] {
			t.Errorf("Pod %s is credited twice: %s", credit.PodUID, text)
		}
		pods[credit.PodUID] = true
	}
	return pods
}

func TestThreeLossesOfAJobThatGetsTwoRetriesBackEndTwoPodsAndHoldTheThird(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 12)
	pods := workload.Job{Namespace: namespace, Name: jobName(), Parallelism: 3, Resource: plugin.Resource}.Create(t, cluster)
	controller := watchOver(t, namespace, retries("settle: 3s, maxPerJob: 2"))
	for _, pod := range pods {
		plugin.Set(t, deviceOf(t, pod), "Unhealthy")
	}
	realcluster.Eventually(t, time.Minute, "two Pods are evicted", func() error {
		if evicted := controller.EvictedIn(t, namespace); evicted != 2 {
			return fmt.Errorf("%d are", evicted)
		}
		return nil
	})
	credited := creditedPods(t, namespace)
	if len(credited) != 2 {
		t.Errorf("the credits are for %v", credited)
	}
	var held corev1.Pod
	for _, pod := range pods {
		if len(controller.Evictions(t, pod)) == 0 {
			held = pod
		} else if !credited[string(pod.UID)] {
			t.Errorf("%s was evicted without a credit", pod.Name)
		}
	}
	awaitVerdict(t, controller, 0, held.Name, "CreditLimitReached", "")
	awaitVerdict(t, controller, 0, held.Name, "NotCreditable", "")
	var running []corev1.Pod
	for _, pod := range pods {
		if pod.UID != held.UID {
			running = story.AwaitReplacement(t, cluster, pod, 3)
		}
	}
	controller.Stays(t, held, 10*time.Second)
	if job := jobNow(t, namespace); *job.Spec.BackoffLimit != 2 || len(job.Status.Conditions) > 0 {
		t.Errorf("its limit is %d, and it is %+v", *job.Spec.BackoffLimit, job.Status.Conditions)
	}
	for _, pod := range running {
		node.Signal(t, pod, syscall.SIGUSR2)
	}
	expectComplete(t, namespace, 2, 3)
	if credited := creditedPods(t, namespace); len(credited) != 2 {
		t.Errorf("in the end the credits are for %v", credited)
	}
	expectNoAdmissionError(t, namespace)
}

func TestAJobWhosePodFailurePolicyIgnoresDisruptionsGetsNoCreditAndFinishes(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 2)
	sick := workload.Job{Namespace: namespace, Name: jobName(), Parallelism: 1, Resource: plugin.Resource, Change: func(job *batchv1.Job) {
		job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}}}
	}}.Create(t, cluster)[0]
	bad := deviceOf(t, sick)
	controller := watchOver(t, namespace, retries("settle: 3s"))
	plugin.Set(t, bad, "Unhealthy")
	controller.AwaitSaidOf(t, sick.Name, "CreditNotNeeded")
	next := story.AwaitReplacement(t, cluster, sick, 1)[0]
	if device := deviceOf(t, next); device == bad {
		t.Errorf("the replacement is on %s again", bad)
	}
	node.Signal(t, next, syscall.SIGUSR2)
	expectComplete(t, namespace, 0, 1)
	if limit := *jobNow(t, namespace).Spec.BackoffLimit; limit != 0 {
		t.Errorf("its limit is %d", limit)
	}
	if sent := jobWrites(t, controller, namespace); len(sent) > 0 {
		t.Errorf("the Job was written: %v", sent)
	}
	story.ExpectEvictedOnce(t, controller, sick)
	expectNoAdmissionError(t, namespace)
}

// With podReplacementPolicy Failed the Job controller waits for how the Pod ends; else it may count the loss before.
func TestAnEvictedPodThatEndsWithZeroCompletesItsJobWhichIsToldSo(t *testing.T) {
	t.Parallel()
	namespace, failed := cluster.Namespace(t), batchv1.Failed
	plugin := node.NewPlugin(t, 2)
	job := workload.Job{Namespace: namespace, Name: jobName(), Parallelism: 1, Resource: plugin.Resource, Arguments: []string{"obey-term"},
		Change: func(job *batchv1.Job) { job.Spec.PodReplacementPolicy = &failed }}
	sick := job.Create(t, cluster)[0]
	node.AwaitListening(t, sick)
	controller := watchOver(t, namespace, retries("settle: 3s"))
	seen := story.WatchPod(t, cluster, sick)
	plugin.Set(t, deviceOf(t, sick), "Unhealthy")
	realcluster.Eventually(t, time.Minute, "the evicted Pod is seen to have succeeded", func() error {
		for _, version := range seen.Versions() {
			if version.Pod.DeletionTimestamp != nil && version.Pod.Status.Phase == corev1.PodSucceeded {
				return nil
			}
		}
		return fmt.Errorf("it is %s", seen.Last().Status.Phase)
	})
	expectComplete(t, namespace, 0, 1)
	controller.AwaitSaidOf(t, job.Name, "EvictedPodSucceeded")
	story.AwaitEvent(t, cluster, namespace, job.Name, "EvictedPodSucceeded")
	realcluster.Eventually(t, time.Minute, "the Job says so", func() error {
		if losses := jobNow(t, namespace).Annotations["device-health.io/losses"]; !strings.Contains(losses, "EvictedPodSucceeded") {
			return fmt.Errorf("it says %q", losses)
		}
		return nil
	})
	expectCondition(t, seen, "")
	story.ExpectEvictedOnce(t, controller, sick)
}

// indexOf is a Pod's index in its Job.
func indexOf(pod corev1.Pod) string { return pod.Annotations[batchv1.JobCompletionIndexAnnotation] }

func TestAnIndexedJobGetsTheSameIndexBackOnAnotherDeviceAndFinishes(t *testing.T) {
	t.Parallel()
	for name, retry := range map[string]*int32{"backoffLimit": nil, "backoffLimitPerIndex": new(int32)} {
		if retry != nil {
			*retry = 1
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace, indexed := cluster.Namespace(t), batchv1.IndexedCompletion
			plugin := node.NewPlugin(t, 4)
			pods := workload.Job{Namespace: namespace, Name: jobName(), Parallelism: 3, Resource: plugin.Resource, Change: func(job *batchv1.Job) {
				job.Spec.CompletionMode = &indexed
				if retry != nil {
					job.Spec.BackoffLimitPerIndex, job.Spec.BackoffLimit = retry, nil
				}
			}}.Create(t, cluster)
			sick, bad := pods[1], deviceOf(t, pods[1])
			controller := watchOver(t, namespace, retries("settle: 3s"))
			plugin.Set(t, bad, "Unhealthy")
			after := story.AwaitReplacement(t, cluster, sick, 3)
			story.ExpectEvictedOnce(t, controller, sick)
			indexes := map[string]bool{}
			for _, pod := range after {
				indexes[indexOf(pod)] = true
				if device := deviceOf(t, pod); indexOf(pod) == indexOf(sick) && device == bad {
					t.Errorf("index %s is on %s again", indexOf(pod), bad)
				}
			}
			if len(indexes) != 3 {
				t.Errorf("the indexes that run are %v", indexes)
			}
			story.ExpectUntouched(t, controller, pods[0])
			story.ExpectUntouched(t, controller, pods[2])
			for _, pod := range after {
				node.Signal(t, pod, syscall.SIGUSR2)
			}
			expectComplete(t, namespace, 1, 3)
			if retry == nil {
				expectCredited(t, namespace, 1, sick, bad)
			} else if sent := jobWrites(t, controller, namespace); len(sent) > 0 {
				t.Errorf("the Job was written: %v", sent)
			} else {
				controller.AwaitSaidOf(t, sick.Name, "CreditNotNeeded")
			}
			if evicted := controller.EvictedIn(t, namespace); evicted != 1 {
				t.Errorf("%d evictions were granted", evicted)
			}
			expectNoAdmissionError(t, namespace)
		})
	}
}

// accepted counts the answers that say that a write was made.
func accepted(codes []int) (count int) {
	for _, code := range codes {
		if code == http.StatusOK {
			count++
		}
	}
	return count
}
