package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

const credits = "device-health.io/retry-credits"

// retries is the policy of these stories: as short a settle time as the Job controller's own batches allow.
func retries(namespace, rules string) string {
	// Nor is it whether there is a place for all of them.
	text := dhc.Policy{Namespace: namespace, JobRetry: "{settle: 6s" + rules + "}", Full: "{wait: 0s}"}.Text()
	// Three of four devices at once are what these stories are about.
	return strings.Replace(text, "perOwner: 10}", "perOwner: 10}\n  brake: {percent: 100, atLeast: 100}", 1)
}

// training is a node with four devices and a Job on some of them.
func training(t *testing.T, parallelism int32) (node *fakenode.Node, namespace string, pods []corev1.Pod) {
	t.Helper()
	namespace = cluster.Namespace(t)
	node = fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(4), Termination: time.Second})
	pods = workload.Job{Namespace: namespace, Name: "train", Parallelism: parallelism, Resource: gpu}.Create(t, cluster)
	return node, namespace, pods
}

func jobNow(t *testing.T, namespace string) *batchv1.Job {
	t.Helper()
	job, err := cluster.Client.BatchV1().Jobs(namespace).Get(t.Context(), "train", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// expectAlive says that the Job runs on with that limit, those losses counted, and one credit for each.
func expectAlive(t *testing.T, namespace string, limit int32) {
	t.Helper()
	realcluster.Eventually(t, 20*time.Second, fmt.Sprintf("the Job has counted %d losses", limit), func() error {
		if failed := jobNow(t, namespace).Status.Failed; failed != limit {
			return fmt.Errorf("they are %d", failed)
		}
		return nil
	})
	job := jobNow(t, namespace)
	for _, condition := range job.Status.Conditions {
		t.Errorf("the Job is %s: %s", condition.Type, condition.Message)
	}
	if *job.Spec.BackoffLimit != limit {
		t.Errorf("its backoffLimit is %d, not %d", *job.Spec.BackoffLimit, limit)
	}
	var record struct {
		Limit   int32            `json:"limit"`
		Credits []map[string]any `json:"credits"`
	}
	if err := json.Unmarshal([]byte(job.Annotations[credits]), &record); err != nil {
		t.Fatalf("%q: %v", job.Annotations[credits], err)
	}
	if record.Limit != limit || len(record.Credits) != int(limit) {
		t.Errorf("its record is %+v", record)
	}
}

func awaitLimit(t *testing.T, namespace string, limit int32) {
	t.Helper()
	realcluster.Eventually(t, 30*time.Second, fmt.Sprintf("the Job's backoffLimit is %d", limit), func() error {
		if now := *jobNow(t, namespace).Spec.BackoffLimit; now != limit {
			return fmt.Errorf("it is %d", now)
		}
		return nil
	})
}

// jobWrites are the controller's accepted writes on Jobs of the namespace.
func jobWrites(t *testing.T, r story.Run, namespace string) int {
	t.Helper()
	return len(r.Requests(t, func(e realcluster.AuditEvent) bool {
		return e.Writes() && e.ObjectRef.Resource == "jobs" && e.ObjectRef.Namespace == namespace && e.Response.Code == http.StatusOK
	}))
}

func TestAJobWithoutARetryLeftSurvivesTheLossOfADeviceAndItsNeighbourIsUntouched(t *testing.T) {
	node, namespace, pods := training(t, 2)
	sick, neighbour := story.Holder(t, pods, "gpu-0"), story.Holder(t, pods, "gpu-1")
	controller := story.Start(t, cluster, dhc.Settings{Policy: retries(namespace, "")})
	node.Break(t, gpu, "gpu-0")
	awaitLimit(t, namespace, 1)
	controller.AwaitSaidOf(t, sick.Name, "Credited")
	story.AwaitReplacement(t, cluster, sick, 2)
	expectAlive(t, namespace, 1)
	story.ExpectEvictedOnce(t, controller, sick)
	story.ExpectUntouched(t, controller, neighbour)
	story.AwaitEvent(t, cluster, namespace, sick.Name, "Credited")
}

func TestWithoutJobRetryAJobWithoutARetryLeftKeepsItsPodUntilThePolicySaysOtherwise(t *testing.T) {
	node, namespace, pods := training(t, 1)
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace}.Text()})
	since := time.Now()
	node.Break(t, gpu, "gpu-0")
	held := controller.AwaitVerdict(t, pods[0].Name, "WouldEndJob")
	if !strings.Contains(held.Message, "backoffLimit is 0") {
		t.Errorf("it says %s", held.Message)
	}
	story.AwaitEvent(t, cluster, namespace, pods[0].Name, "WouldEndJob")
	controller.Stays(t, pods[0], 5*time.Second)
	controller.Kill()
	second := story.Start(t, cluster, dhc.Settings{Policy: retries(namespace, "")}).Since(since)
	story.AwaitReplacement(t, cluster, pods[0], 1)
	expectAlive(t, namespace, 1)
	story.ExpectEvictedOnce(t, second, pods[0])
}

func TestThreeLossesWithMaxPerJobTwoGiveTwoCreditsAndThenTheVerdict(t *testing.T) {
	node, namespace, pods := training(t, 3)
	controller := story.Start(t, cluster, dhc.Settings{Policy: retries(namespace, ", maxPerJob: 2")})
	for _, device := range []string{"gpu-0", "gpu-1", "gpu-2"} {
		node.Break(t, gpu, device)
	}
	awaitLimit(t, namespace, 2)
	realcluster.Eventually(t, 30*time.Second, "two pods are evicted", func() error {
		if evicted := controller.EvictedIn(t, namespace); evicted != 2 {
			return fmt.Errorf("%d are", evicted)
		}
		return nil
	})
	var held string
	for _, pod := range pods {
		if len(controller.Evictions(t, pod)) == 0 {
			held = pod.Name
		}
	}
	controller.AwaitVerdict(t, held, "CreditLimitReached")
	controller.AwaitVerdict(t, held, "NotCreditable")
	expectAlive(t, namespace, 2)
}

func TestAKilledControllerGivesExactlyOneCredit(t *testing.T) {
	for name, moment := range map[string]func(t *testing.T, r story.Run, namespace string, sick corev1.Pod){
		"between credit and eviction": func(t *testing.T, _ story.Run, namespace string, _ corev1.Pod) { awaitLimit(t, namespace, 1) },
		"between eviction and count": func(t *testing.T, r story.Run, namespace string, sick corev1.Pod) {
			realcluster.Eventually(t, 30*time.Second, "the pod is evicted", func() error {
				if r.Evictions(t, sick)[http.StatusCreated] == 0 {
					return fmt.Errorf("it is not")
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			node, namespace, pods := training(t, 1)
			first := story.Start(t, cluster, dhc.Settings{Policy: retries(namespace, "")})
			since := time.Now()
			node.Break(t, gpu, "gpu-0")
			moment(t, first, namespace, pods[0])
			first.Kill()
			second := story.Start(t, cluster, dhc.Settings{Policy: retries(namespace, "")}).Since(since)
			story.AwaitReplacement(t, cluster, pods[0], 1)
			expectAlive(t, namespace, 1)
			story.ExpectEvictedOnce(t, second, pods[0])
		})
	}
}

func TestAnotherWriterOnTheJobAtEveryStepDelaysTheCreditAndNeverDoublesIt(t *testing.T) {
	node, namespace, pods := training(t, 1)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ {
			patch := fmt.Sprintf(`{"metadata":{"labels":{"writer":"w%d"}}}`, i)
			_, _ = cluster.Client.BatchV1().Jobs(namespace).Patch(ctx, "train", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		}
	}()
	story.Start(t, cluster, dhc.Settings{Policy: retries(namespace, "")})
	node.Break(t, gpu, "gpu-0")
	awaitLimit(t, namespace, 1)
	stop()
	<-ended
	story.AwaitReplacement(t, cluster, pods[0], 1)
	expectAlive(t, namespace, 1)
}

func TestTheOldManifestAppliedBetweenCreditAndEvictionHoldsThePod(t *testing.T) {
	node, namespace, pods := training(t, 1)
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, JobRetry: "{settle: 20s}"}.Text()})
	node.Break(t, gpu, "gpu-0")
	awaitLimit(t, namespace, 1)
	_, err := cluster.Client.BatchV1().Jobs(namespace).Patch(t.Context(), "train", types.MergePatchType, []byte(`{"spec":{"backoffLimit":0}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	controller.AwaitVerdict(t, "train", "CreditReverted")
	controller.Stays(t, pods[0], 23*time.Second)
	story.AwaitEvent(t, cluster, namespace, "train", "CreditReverted")
	if job := jobNow(t, namespace); *job.Spec.BackoffLimit != 0 || len(job.Status.Conditions) > 0 {
		t.Errorf("the Job was written again, or ended: %d, %v", *job.Spec.BackoffLimit, job.Status.Conditions)
	}
}

func TestAJobThatIgnoresDisruptionsGetsNoCreditAndAnOwnedOneIsNotTouched(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(t *testing.T, namespace string, job *batchv1.Job)
		reason  string
		evicted bool
	}{
		"podFailurePolicy": {func(_ *testing.T, _ string, job *batchv1.Job) {
			job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionIgnore,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}}}
		}, "CreditNotNeeded", true},
		"backoffLimitPerIndex 0": {func(_ *testing.T, _ string, job *batchv1.Job) {
			mode, none := batchv1.IndexedCompletion, int32(0)
			job.Spec.CompletionMode, job.Spec.BackoffLimitPerIndex, job.Spec.BackoffLimit = &mode, &none, nil
		}, "IndexOutOfRetries", false},
		"Kueue": {func(_ *testing.T, _ string, job *batchv1.Job) {
			job.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "q"}
		}, "JobOwnedByOther", false},
		"another owner": {func(t *testing.T, namespace string, job *batchv1.Job) {
			job.OwnerReferences = []metav1.OwnerReference{workload.ForeignOwner(t, cluster, namespace)}
		}, "JobOwnedByOther", false},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := cluster.Namespace(t)
			node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(4), Termination: time.Second})
			pods := workload.Job{Namespace: namespace, Name: "train", Parallelism: 1, Resource: gpu,
				Change: func(job *batchv1.Job) { test.change(t, namespace, job) }}.Create(t, cluster)
			controller := story.Start(t, cluster, dhc.Settings{Policy: retries(namespace, "")})
			node.Break(t, gpu, "gpu-0")
			controller.AwaitSaidOf(t, pods[0].Name, test.reason)
			if test.evicted {
				story.AwaitReplacement(t, cluster, pods[0], 1)
				if job := jobNow(t, namespace); job.Status.Failed != 0 || len(job.Status.Conditions) > 0 {
					t.Errorf("it has counted the loss, or ended: %+v", job.Status)
				}
			} else {
				controller.Stays(t, pods[0], 6*time.Second)
			}
			if writes := jobWrites(t, controller, namespace); writes > 0 {
				t.Errorf("the Job was written %d times", writes)
			}
		})
	}
}

func TestAJobWhoseEvictedPodSucceededIsToldSo(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(4), Termination: time.Second, ExitZero: true})
	workload.Job{Namespace: namespace, Name: "train", Parallelism: 1, Resource: gpu}.Create(t, cluster)
	controller := story.Start(t, cluster, dhc.Settings{Policy: retries(namespace, "")})
	node.Break(t, gpu, "gpu-0")
	controller.AwaitVerdict(t, "train", "EvictedPodSucceeded")
	realcluster.Eventually(t, 30*time.Second, "the Job says so", func() error {
		if losses := jobNow(t, namespace).Annotations["device-health.io/losses"]; !strings.Contains(losses, "EvictedPodSucceeded") {
			return fmt.Errorf("it says %q", losses)
		}
		return nil
	})
	story.AwaitEvent(t, cluster, namespace, "train", "EvictedPodSucceeded")
}

func TestTheExampleMutatingAdmissionPolicyGivesNewJobsAPodFailurePolicy(t *testing.T) {
	dhc.Apply(t, cluster, "manifests/examples/jobs/job-failure-policy.yaml")
	namespace := cluster.Namespace(t)
	count := 0
	realcluster.Eventually(t, 30*time.Second, "a new Job has the rule", func() error {
		count++
		pod := workload.OneContainer("", "", "")
		pod.RestartPolicy = corev1.RestartPolicyNever
		job, err := cluster.Client.BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("train-", count)},
			Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if job.Spec.PodFailurePolicy == nil || job.Spec.PodFailurePolicy.Rules[0].Action != batchv1.PodFailurePolicyActionIgnore {
			return fmt.Errorf("its policy is %v", job.Spec.PodFailurePolicy)
		}
		if *job.Spec.PodReplacementPolicy != batchv1.Failed {
			return fmt.Errorf("its podReplacementPolicy is %s", *job.Spec.PodReplacementPolicy)
		}
		return nil
	})
	// Such a Job needs nothing from us, and survives with no retry at all.
	node, held, pods := training(t, 1)
	controller := story.Start(t, cluster, dhc.Settings{Policy: retries(held, "")})
	node.Break(t, gpu, "gpu-0")
	controller.AwaitSaidOf(t, pods[0].Name, "CreditNotNeeded")
	story.AwaitReplacement(t, cluster, pods[0], 1)
	if job := jobNow(t, held); *job.Spec.BackoffLimit != 0 || job.Status.Failed != 0 || len(job.Status.Conditions) > 0 {
		t.Errorf("its limit is %d, and it is %+v", *job.Spec.BackoffLimit, job.Status)
	}
	if writes := jobWrites(t, controller, held); writes > 0 {
		t.Errorf("the Job was written %d times", writes)
	}
}
