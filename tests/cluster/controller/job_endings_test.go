package controller

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
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

const recreatedFrom = "device-health.io/recreated-from"

// afterwards is a policy under which no incident opens within a test: what is credited has died first.
func afterwards(namespace, rules string) string {
	text := dhc.Policy{Namespace: namespace, After: "30m", JobRetry: "{settle: 3s" + rules + "}"}.Text()
	return strings.Replace(text, "perOwner: 10}", "perOwner: 10}\n  brake: {percent: 100, atLeast: 100}", 1)
}

// creditStates are the states of the Job's credits by Pod UID.
func creditStates(t *testing.T, namespace string) map[string]string {
	t.Helper()
	job, states := jobNow(t, namespace), map[string]string{}
	if job.Annotations[credits] == "" {
		return states
	}
	var record struct {
		Credits []struct{ PodUID, State string }
	}
	if err := json.Unmarshal([]byte(job.Annotations[credits]), &record); err != nil {
		t.Fatalf("%q: %v", job.Annotations[credits], err)
	}
	for _, credit := range record.Credits {
		if states[credit.PodUID] != "" {
			t.Errorf("Pod %s is credited twice: %s", credit.PodUID, job.Annotations[credits])
		}
		states[credit.PodUID] = credit.State
	}
	return states
}

func TestAPodThatCrashedBeforeAnyReportIsCreditedOnceItsDeviceIsReportedByTheNextHolder(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(1), Termination: time.Second})
	first := workload.Job{Namespace: namespace, Name: "train", Parallelism: 1, BackoffLimit: 1, Resource: gpu}.Create(t, cluster)[0]
	controller := story.Start(t, cluster, dhc.Settings{Policy: afterwards(namespace, "")})
	node.SetPodStatus(first.UID, "phase", "Failed")
	next := story.AwaitReplacement(t, cluster, first, 1)[0]
	if writes := jobWrites(t, controller, namespace); writes > 0 {
		t.Errorf("without any evidence the Job was written %d times", writes)
	}
	node.SetHealth(gpu, "gpu-0", "Unhealthy", "")
	awaitLimit(t, namespace, 2)
	controller.AwaitVerdict(t, "train", "DiedOfDevice")
	story.AwaitEvent(t, cluster, namespace, "train", "DiedOfDevice")
	if states := creditStates(t, namespace); len(states) != 1 || states[string(first.UID)] != "spent" {
		t.Errorf("the credits are %v, and %s has died", states, first.UID)
	}
	if losses := jobNow(t, namespace).Annotations["device-health.io/losses"]; !strings.Contains(losses, "DiedOfDevice") || !strings.Contains(losses, string(first.UID)) {
		t.Errorf("its losses are %q", losses)
	}
	// A process that comes after this one knows nothing of it, and gives nothing twice.
	controller.Kill()
	second := story.Start(t, cluster, dhc.Settings{Policy: afterwards(namespace, "")})
	second.AwaitVerdict(t, next.Name, "WaitingForWindow")
	if writes := jobWrites(t, second, namespace); writes > 0 || *jobNow(t, namespace).Spec.BackoffLimit != 2 {
		t.Errorf("after a restart the Job was written %d times", writes)
	}
}

// deadJob lets a Job fail for good of a device that was seen bad: the controller is stopped while the Job controller counts, so that it
// cannot give the retry back in time.
func deadJob(t *testing.T, namespace string, node *fakenode.Node, controller story.Run, sick corev1.Pod) {
	t.Helper()
	node.Break(t, gpu, "gpu-0")
	controller.AwaitVerdict(t, sick.Name, "WaitingForWindow")
	controller.Signal(t, syscall.SIGSTOP)
	node.SetPodStatus(sick.UID, "phase", "Failed")
	realcluster.Eventually(t, time.Minute, "the Job has failed", func() error {
		for _, condition := range jobNow(t, namespace).Status.Conditions {
			if condition.Type == batchv1.JobFailed && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("it has not")
	})
	controller.Signal(t, syscall.SIGCONT)
}

// madeAgain are the Jobs that were made for a dead one.
func madeAgain(t *testing.T, namespace string) []batchv1.Job {
	t.Helper()
	list, err := cluster.Client.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: recreatedFrom})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestAJobThatDiedOfItsDeviceIsMadeAgainOnceAndNeverTwice(t *testing.T) {
	dhc.Apply(t, cluster, "manifests/components/recreate-jobs/rbac-recreate-jobs.yaml")
	node, namespace, pods := training(t, 1)
	policy, since := afterwards(namespace, ", recreate: Once"), time.Now()
	controller := story.Start(t, cluster, dhc.Settings{Policy: policy})
	deadJob(t, namespace, node, controller, pods[0])
	controller.AwaitVerdict(t, "train", "JobDiedOfDevice")
	var again batchv1.Job
	realcluster.Eventually(t, time.Minute, "the Job's replacement has finished its start", func() error {
		made := madeAgain(t, namespace)
		if len(made) != 1 || made[0].Status.Active != 1 {
			return fmt.Errorf("there are %d", len(made))
		}
		again = made[0]
		return nil
	})
	if again.Labels[recreatedFrom] != string(jobNow(t, namespace).UID) || *again.Spec.BackoffLimit != 0 || again.Annotations[credits] != "" {
		t.Errorf("the replacement is %+v", again.ObjectMeta)
	}
	running := workload.AwaitRunning(t, cluster, namespace, "train", 1)[0]
	if owner := metav1.GetControllerOf(&running); owner == nil || owner.UID != again.UID {
		t.Errorf("its Pod belongs to %+v", owner)
	}
	if device, health := workload.Device(running); device == "gpu-0" || health != "Healthy" {
		t.Errorf("its Pod holds %s, which is %s", device, health)
	}
	realcluster.Eventually(t, 0, "the dead Job says of what it died", func() error {
		if said := jobNow(t, namespace).Annotations["device-health.io/losses"]; !strings.Contains(said, "JobDiedOfDevice") {
			return fmt.Errorf("it says %q", said)
		}
		return nil
	})
	controller.Kill()
	second := story.Start(t, cluster, dhc.Settings{Policy: policy}).Since(since)
	second.AwaitVerdict(t, "train", "JobDiedOfDevice") // from the Job's own annotation
	// The replacement that dies, too, is not made a third time.
	node.SetHealth(gpu, "gpu-1", "Unhealthy", "")
	second.AwaitVerdict(t, running.Name, "WaitingForWindow")
	node.SetPodStatus(running.UID, "phase", "Failed")
	realcluster.Eventually(t, time.Minute, "the second Job's loss is credited, or it has died", func() error {
		for _, verdict := range second.Verdicts(t) {
			if verdict.Subject.Name == again.Name && (verdict.Reason == "DiedOfDevice" || verdict.Reason == "JobDiedOfDevice") {
				return nil
			}
		}
		return fmt.Errorf("nothing is said of it")
	})
	created := second.Requests(t, func(e realcluster.AuditEvent) bool {
		return e.Verb == "create" && e.ObjectRef.Resource == "jobs" && e.ObjectRef.Namespace == namespace
	})
	if len(created) != 1 || created[0].Response.Code != http.StatusCreated || len(madeAgain(t, namespace)) != 1 {
		t.Errorf("Jobs were created %d times, %d are there", len(created), len(madeAgain(t, namespace)))
	}
}

func TestASuspendedJobIsNotWrittenAndRunsOnElsewhereWhenItIsResumed(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(2), Termination: 15 * time.Second})
	sick := workload.Job{Namespace: namespace, Name: "train", Parallelism: 1, Resource: gpu}.Create(t, cluster)[0]
	controller := story.Start(t, cluster, dhc.Settings{Policy: retries(namespace, "")})
	suspend := func(on bool) {
		_, err := cluster.Client.BatchV1().Jobs(namespace).Patch(t.Context(), "train", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, on), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	suspend(true)
	realcluster.Eventually(t, 30*time.Second, "the Job's Pod is told to end", func() error {
		now, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), sick.Name, metav1.GetOptions{})
		if err == nil && now.DeletionTimestamp == nil {
			err = fmt.Errorf("it is not")
		}
		return err
	})
	node.Break(t, gpu, "gpu-0") // while the Pod takes its time
	realcluster.Eventually(t, 40*time.Second, "the Pod is gone", func() error {
		if left := workload.Pods(t, cluster, namespace, "train"); len(left) > 0 {
			return fmt.Errorf("%d Pods", len(left))
		}
		_, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), sick.Name, metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	suspend(false)
	running := workload.AwaitRunning(t, cluster, namespace, "train", 1)[0]
	if device, _ := workload.Device(running); device != "gpu-1" {
		t.Errorf("it runs on %s", device)
	}
	if job := jobNow(t, namespace); job.Status.Failed != 0 || *job.Spec.BackoffLimit != 0 {
		t.Errorf("%d failed, limit %d", job.Status.Failed, *job.Spec.BackoffLimit)
	}
	if writes := jobWrites(t, controller, namespace); writes > 0 {
		t.Errorf("the Job was written %d times", writes)
	}
	story.ExpectUntouched(t, controller, running)
}

func TestAJobThatAnotherControllerManagesIsHeldAndNotWritten(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(2), Termination: time.Second})
	manager, pod := "example.com/queue", workload.OneContainer(gpu, "", "")
	pod.RestartPolicy = corev1.RestartPolicyNever
	job, err := cluster.Client.BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "train"},
		Spec: batchv1.JobSpec{ManagedBy: &manager, Template: corev1.PodTemplateSpec{Spec: pod}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: "train-0", Labels: workload.Labels("train"), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}}
	if _, err := cluster.Client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: meta, Spec: pod}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	held := workload.AwaitRunning(t, cluster, namespace, "train", 1)[0]
	controller := story.Start(t, cluster, dhc.Settings{Policy: retries(namespace, "")})
	node.Break(t, gpu, "gpu-0")
	controller.AwaitVerdict(t, held.Name, "JobManagedByOther")
	controller.AwaitVerdict(t, held.Name, "NotCreditable")
	controller.Stays(t, held, 6*time.Second)
	if writes := jobWrites(t, controller, namespace); writes > 0 {
		t.Errorf("the Job was written %d times", writes)
	}
}

func TestReplacementsThatTheirKubeletRejectsAreCreditedOnceEachAndMakeABlackHole(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(4), Termination: time.Second})
	pods := workload.Job{Namespace: namespace, Name: "train", Parallelism: 3, BackoffLimit: 6, Resource: gpu}.Create(t, cluster)
	policy := afterwards(namespace, ", maxPerJob: 20, blackHole: {rejections: 2}")
	controller := story.Start(t, cluster, dhc.Settings{Policy: policy})
	// The devices go bad, and the node goes on to promise them: what asks for one is rejected.
	for id := range 4 {
		node.SetHealth(gpu, fmt.Sprint("gpu-", id), "Unhealthy", "")
	}
	for _, pod := range pods {
		story.AwaitHealth(t, cluster, pod, "Unhealthy")
		controller.AwaitVerdict(t, pod.Name, "WaitingForWindow")
	}
	for _, pod := range pods[:2] {
		node.SetPodStatus(pod.UID, "phase", "Failed")
	}
	controller.AwaitVerdict(t, node.Name, "BlackHoleNode")
	dead := map[string]string{}
	realcluster.Eventually(t, time.Minute, "every dead Pod has one credit", func() error {
		list, err := cluster.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		states := creditStates(t, namespace)
		dead = map[string]string{}
		for _, pod := range list.Items {
			if pod.Status.Phase != corev1.PodFailed {
				continue
			}
			dead[string(pod.UID)] = pod.Status.Reason
			if states[string(pod.UID)] != "spent" {
				return fmt.Errorf("%s %s is %q", pod.Name, pod.Status.Reason, states[string(pod.UID)])
			}
		}
		if len(states) != len(dead) || *jobNow(t, namespace).Spec.BackoffLimit != int32(6+len(dead)) {
			return fmt.Errorf("%d credits for %d dead Pods, limit %d", len(states), len(dead), *jobNow(t, namespace).Spec.BackoffLimit)
		}
		return nil
	})
	rejected := 0
	for _, reason := range dead {
		if reason == "UnexpectedAdmissionError" {
			rejected++
		}
	}
	if rejected < 2 {
		t.Errorf("%d Pods were rejected: %v", rejected, dead)
	}
	story.AwaitEvent(t, cluster, "default", node.Name, "BlackHoleNode")
	// A new process sees the same Pods, and credits none of them again.
	controller.Kill()
	second := story.Start(t, cluster, dhc.Settings{Policy: policy})
	second.AwaitVerdict(t, node.Name, "BlackHoleNode")
	for uid, state := range creditStates(t, namespace) { // which says so itself if one is there twice
		if state != "spent" {
			t.Errorf("the credit of %s is %s", uid, state)
		}
	}
}

const manifest = `
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  backoffLimit: 0
  template:
    metadata: {labels: {app: train}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "registry.test/pause:1", resources: {limits: {example.com/gpu: 1}}}]
`

func TestKubectlApplyOfTheOriginalManifestIsSeenAndNotUndone(t *testing.T) {
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(2), Termination: time.Second})
	apply := func() {
		if out, err := cluster.Kubectl(manifest, "apply", "--namespace", namespace, "-f", "-"); err != nil {
			t.Fatal(out, err)
		}
	}
	apply()
	pod := workload.AwaitRunning(t, cluster, namespace, "train", 1)[0]
	// So long that even a loaded machine applies before the eviction.
	policy := dhc.Policy{Namespace: namespace, JobRetry: "{settle: 30s}"}.Text()
	controller := story.Start(t, cluster, dhc.Settings{Policy: policy})
	node.Break(t, gpu, "gpu-0")
	awaitLimit(t, namespace, 1)
	apply()
	if limit := *jobNow(t, namespace).Spec.BackoffLimit; limit != 0 {
		t.Fatalf("kubectl apply left the limit at %d", limit)
	}
	controller.AwaitVerdict(t, "train", "CreditReverted")
	story.AwaitEvent(t, cluster, namespace, "train", "CreditReverted")
	credited := jobNow(t, namespace).Annotations[credits]
	controller.Stays(t, pod, 35*time.Second)
	job := jobNow(t, namespace)
	if *job.Spec.BackoffLimit != 0 || job.Annotations[credits] != credited || len(job.Status.Conditions) > 0 {
		t.Errorf("the Job was written again, or ended: limit %d, %v, %s", *job.Spec.BackoffLimit, job.Status.Conditions, job.Annotations[credits])
	}
	if writes := jobWrites(t, controller, namespace); writes != 1 {
		t.Errorf("the Job was written %d times", writes)
	}
}

func TestAJobWithoutARetryFinishesOnAnotherDeviceAsItWouldHaveOnGoodHardware(t *testing.T) {
	for name, restart := range map[string]corev1.RestartPolicy{"Never": corev1.RestartPolicyNever, "OnFailure": corev1.RestartPolicyOnFailure} {
		t.Run(name, func(t *testing.T) {
			namespace := cluster.Namespace(t)
			node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: gpus(2), Termination: time.Second})
			sick := workload.Job{Namespace: namespace, Name: "train", Parallelism: 1, Resource: gpu,
				Change: func(job *batchv1.Job) { job.Spec.Template.Spec.RestartPolicy = restart }}.Create(t, cluster)[0]
			controller := story.Start(t, cluster, dhc.Settings{Policy: retries(namespace, "")})
			node.Break(t, gpu, "gpu-0")
			next := story.AwaitReplacement(t, cluster, sick, 1)[0]
			story.ExpectEvictedOnce(t, controller, sick)
			if device, _ := workload.Device(next); device != "gpu-1" {
				t.Errorf("it runs on %s", device)
			}
			node.SetPodStatus(next.UID, "phase", "Succeeded")
			realcluster.Eventually(t, time.Minute, "the Job is Complete", func() error {
				for _, condition := range jobNow(t, namespace).Status.Conditions {
					if condition.Type == batchv1.JobComplete && condition.Status == corev1.ConditionTrue {
						return nil
					}
				}
				return fmt.Errorf("it is %+v", jobNow(t, namespace).Status)
			})
			job := jobNow(t, namespace)
			if job.Status.Failed != 1 || job.Status.Succeeded != 1 || *job.Spec.BackoffLimit != 1 || len(creditStates(t, namespace)) != 1 {
				t.Errorf("%+v, limit %d, %s", job.Status, *job.Spec.BackoffLimit, job.Annotations[credits])
			}
		})
	}
}
