package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

func TestAnEvictedPodOfAQueuedJobCostsItARetryAndItsWorkloadStaysAdmitted(t *testing.T) {
	p, pods := admit(t, 4, 2, nil)
	controller := p.start(t)
	p.breakUnder(t, pods[0])
	story.AwaitReplacement(t, cluster, pods[0], 2)
	story.ExpectEvictedOnce(t, controller, pods[0])
	story.ExpectUntouched(t, controller, pods[1])
	p.expectAdmitted(t, controller, 1)
}

func TestAQueuedJobThatIgnoresDisruptionsPaysNothing(t *testing.T) {
	p, pods := admit(t, 4, 0, func(job *batchv1.Job) {
		job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}}}
	})
	controller := p.start(t)
	p.breakUnder(t, pods[0])
	controller.AwaitSaidOf(t, pods[0].Name, "CreditNotNeeded")
	story.AwaitReplacement(t, cluster, pods[0], 2)
	story.ExpectEvictedOnce(t, controller, pods[0])
	p.expectAdmitted(t, controller, 0)
}

// What its operator may do then, Kueue allows on a Job that it has admitted.
func TestAPodOfAQueuedJobWithoutARetryStaysUntilSomebodyRaisesTheLimit(t *testing.T) {
	p, pods := admit(t, 4, 0, nil)
	controller := p.start(t)
	p.breakUnder(t, pods[0])
	held := controller.AwaitVerdict(t, pods[0].Name, "NotCreditable")
	if !strings.Contains(held.Message, "the loss would end Job train") || !strings.Contains(held.Message, "Kueue") {
		t.Errorf("it says %s", held.Message)
	}
	controller.Stays(t, pods[0], 8*time.Second)
	patch := []byte(`{"spec":{"backoffLimit":1}}`)
	if _, err := cluster.Client.BatchV1().Jobs(p.namespace).Patch(t.Context(), "train", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	story.AwaitReplacement(t, cluster, pods[0], 2)
	story.ExpectEvictedOnce(t, controller, pods[0])
	p.expectAdmitted(t, controller, 1)
}

func TestAQueuedJobWhoseReplacementFindsNoDeviceLosesAllItsPodsAfterTheRecoveryTimeout(t *testing.T) {
	p, pods := admit(t, 2, 6, nil)
	controller := p.start(t)
	p.breakUnder(t, pods[0])
	story.AwaitGone(t, cluster, pods[0])
	story.ExpectEvictedOnce(t, controller, pods[0])
	realcluster.Eventually(t, realcluster.KueueRecovery+time.Minute, "Kueue takes the Workload back", func() error {
		now := workload.Queued(t, cluster, p.namespace)
		if evicted := now.True("Evicted"); evicted == nil || evicted.Reason != "PodsReadyTimeout" {
			return fmt.Errorf("it is %+v", now.Conditions)
		}
		return nil
	})
	story.AwaitGone(t, cluster, pods[1])
	if job := p.job(t); !*job.Spec.Suspend || job.Status.Failed != 1 {
		t.Errorf("the Job is suspended: %t, and has counted %d losses", *job.Spec.Suspend, job.Status.Failed)
	}
	if evicted := controller.EvictedIn(t, p.namespace); evicted != 1 {
		t.Errorf("%d pods were evicted by us", evicted)
	}
}
