package node

import (
	"context"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// Not beside others: each has controllers of its own, one after the other. No step can pass by itself before the kill: the first controller
// waits for ever after a credit, or the evicted Pod does not end before it is killed, and the Job counts only what has ended.
func TestAControllerKilledAroundAnEvictionGivesExactlyOneCredit(t *testing.T) {
	alone(t)
	settings := func(namespace, settle string) dhc.Settings {
		return dhc.Settings{Policy: dhc.Policy{Namespace: namespace, JobRetry: "{settle: " + settle + "}"}.Text()}
	}
	evicted := func(t *testing.T, r story.Run, sick corev1.Pod) {
		realcluster.Eventually(t, time.Minute, "the Pod is evicted", func() error {
			if r.Evictions(t, sick)[http.StatusCreated] == 0 {
				return fmt.Errorf("it is not")
			}
			return nil
		})
	}
	for moment, step := range map[string]struct {
		settle        string // of the first controller
		reached       func(*testing.T, story.Run, corev1.Pod)
		countedBefore bool // the second starts
	}{
		"between credit and eviction": {"9m", func(t *testing.T, r story.Run, sick corev1.Pod) {
			awaitLimit(t, sick.Namespace, 1)
			if sent := r.Evictions(t, sick); len(sent) > 0 {
				t.Fatalf("it was evicted already: %v", sent)
			}
		}, false},
		"between eviction and count":                           {"3s", evicted, false},
		"between eviction and count, and back after the count": {"3s", evicted, true},
	} {
		t.Run(moment, func(t *testing.T) {
			namespace, failed, grace := cluster.Namespace(t), batchv1.Failed, int64(900)
			plugin := node.NewPlugin(t, 2)
			sick := workload.Job{Namespace: namespace, Name: jobName(), Parallelism: 1, Resource: plugin.Resource, Arguments: []string{"ignore-term"},
				Change: func(job *batchv1.Job) {
					job.Spec.PodReplacementPolicy = &failed
					job.Spec.Template.Spec.TerminationGracePeriodSeconds = &grace
				}}.Create(t, cluster)[0]
			node.AwaitListening(t, sick)
			bad, began := deviceOf(t, sick), time.Now()
			first := story.Start(t, cluster, settings(namespace, step.settle))
			plugin.Set(t, bad, "Unhealthy")
			step.reached(t, first, sick)
			first.Kill()
			notCounted := func() {
				if job := jobNow(t, namespace); job.Status.Failed != 0 || *job.Spec.BackoffLimit != 1 {
					t.Fatalf("after the kill its limit is %d, and its status %+v", *job.Spec.BackoffLimit, job.Status)
				}
			}
			notCounted()
			end := func() {
				notCounted()
				node.Signal(t, sick, syscall.SIGKILL)
				realcluster.Eventually(t, time.Minute, "the Job has counted its loss", func() error {
					if status := jobNow(t, namespace).Status; status.Failed != 1 {
						return fmt.Errorf("it is %+v", status)
					}
					return nil
				})
			}
			if step.countedBefore {
				end()
			}
			second := story.Start(t, cluster, settings(namespace, "3s")).Since(began)
			if !step.countedBefore {
				evicted(t, second, sick)
				end()
			}
			next := story.AwaitReplacement(t, cluster, sick, 1)[0]
			if device := deviceOf(t, next); device == bad {
				t.Errorf("the replacement is on %s again", bad)
			}
			finishes(t, namespace, next)
			expectCredited(t, namespace, 1, sick, bad)
			story.ExpectEvictedOnce(t, second, sick)
			if granted := second.EvictedIn(t, namespace); granted != 1 {
				t.Errorf("%d evictions were granted in the namespace", granted)
			}
		})
	}
}

// The other writer goes on until the replacement runs: credit, wait, eviction and count all happen beside it.
func TestAnotherWriterOnTheJobUntilItsReplacementRunsCostsNoRetryAndGivesNoneTwice(t *testing.T) {
	t.Parallel()
	namespace, name := cluster.Namespace(t), jobName()
	plugin := node.NewPlugin(t, 2)
	sick := workload.Job{Namespace: namespace, Name: name, Parallelism: 1, Resource: plugin.Resource}.Create(t, cluster)[0]
	bad := deviceOf(t, sick)
	controller := watchOver(t, namespace, retries("settle: 3s"))
	ctx, stop := context.WithCancel(t.Context())
	written := make(chan int, 1)
	go func() {
		count := 0
		for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) { // side by side with many stories
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{"writer":"w%d"}}}`, count)
			if _, err := cluster.Client.BatchV1().Jobs(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err == nil {
				count++
			}
		}
		written <- count
	}()
	plugin.Set(t, bad, "Unhealthy")
	next := story.AwaitReplacement(t, cluster, sick, 1)[0]
	stop()
	t.Logf("%d writes of the other, and ours were answered %v", <-written, jobWrites(t, controller, namespace))
	finishes(t, namespace, next)
	expectCredited(t, namespace, 1, sick, bad)
	story.ExpectEvictedOnce(t, controller, sick)
	expectNoAdmissionError(t, namespace)
}
