package node

import (
	"fmt"
	"syscall"
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

func TestAJobOfAnotherOwnerIsNotWrittenAndItsPodIsHeld(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, namespace string, job *batchv1.Job){
		"Kueue": func(_ *testing.T, _ string, job *batchv1.Job) {
			job.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "q"}
		},
		"another owner": func(t *testing.T, namespace string, job *batchv1.Job) {
			job.OwnerReferences = []metav1.OwnerReference{workload.ForeignOwner(t, cluster, namespace)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := cluster.Namespace(t)
			plugin := node.NewPlugin(t, 2)
			sick := workload.Job{Namespace: namespace, Name: jobName(), Parallelism: 1, Resource: plugin.Resource,
				Change: func(job *batchv1.Job) { change(t, namespace, job) }}.Create(t, cluster)[0]
			controller := watchOver(t, namespace, retries("settle: 3s"))
			plugin.Set(t, deviceOf(t, sick), "Unhealthy")
			expectHeld(t, controller, sick, "JobOwnedByOther")
			node.Signal(t, sick, syscall.SIGUSR2)
			expectComplete(t, namespace, 0, 1)
			if sent := jobWrites(t, controller, namespace); len(sent) > 0 {
				t.Errorf("the Job was written: %v", sent)
			}
		})
	}
}

// expectHeld waits for the verdicts that hold the Pod of an unhealthy device, and says that it stays and that its Job was not written.
func expectHeld(t *testing.T, r story.Run, sick corev1.Pod, reason string) {
	t.Helper()
	awaitVerdict(t, r, 0, sick.Name, reason, "")
	awaitVerdict(t, r, 0, sick.Name, "NotCreditable", "")
	story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
	r.Stays(t, sick, 15*time.Second)
	if sent := jobWrites(t, r, sick.Namespace); len(sent) > 0 {
		t.Errorf("the Job was written: %v", sent)
	}
}

// The Job controller leaves such a Job alone: its Pod is made here.
func TestAJobThatIsManagedByAnotherControllerIsNotWrittenAndItsPodIsHeld(t *testing.T) {
	t.Parallel()
	namespace, name, manager := cluster.Namespace(t), jobName(), "example.com/queue"
	plugin := node.NewPlugin(t, 2)
	pod := workload.OneContainer(plugin.Resource, "", "")
	pod.RestartPolicy = corev1.RestartPolicyNever
	job, err := cluster.Client.BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{ManagedBy: &manager, Template: corev1.PodTemplateSpec{Spec: pod}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: name, Labels: workload.Labels(name),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}}
	if _, err := cluster.Client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: meta, Spec: pod}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	sick := workload.AwaitRunning(t, cluster, namespace, name, 1)[0]
	controller := watchOver(t, namespace, retries("settle: 3s"))
	plugin.Set(t, deviceOf(t, sick), "Unhealthy")
	expectHeld(t, controller, sick, "JobManagedByOther")
}

// A suspended Job's Pod is on its way out; this one takes its time until it is killed.
func TestASuspendedJobIsNotWrittenAndItsPodIsNotEvictedAndResumedItFinishesElsewhere(t *testing.T) {
	t.Parallel()
	namespace, name, grace := cluster.Namespace(t), jobName(), int64(600)
	plugin := node.NewPlugin(t, 2)
	sick := workload.Job{Namespace: namespace, Name: name, Parallelism: 1, Resource: plugin.Resource, Arguments: []string{"ignore-term"},
		Change: func(job *batchv1.Job) { job.Spec.Template.Spec.TerminationGracePeriodSeconds = &grace }}.Create(t, cluster)[0]
	node.AwaitListening(t, sick)
	bad := deviceOf(t, sick)
	controller := watchOver(t, namespace, retries("settle: 3s"))
	suspend := func(on bool) {
		_, err := cluster.Client.BatchV1().Jobs(namespace).Patch(t.Context(), name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, on), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	suspend(true)
	realcluster.Eventually(t, time.Minute, "the Job's Pod is told to end", func() error {
		now, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), sick.Name, metav1.GetOptions{})
		if err == nil && now.DeletionTimestamp == nil {
			err = fmt.Errorf("it is not")
		}
		return err
	})
	// The kubelet that waits for a Pod's end says no more of its device's health; the node's numbers go on.
	plugin.Set(t, bad, "Unhealthy")
	plugin.AwaitCapacity(t, 2, 1)
	realcluster.Never(t, 15*time.Second, "nobody evicts what goes anyway", func() error {
		if sent := controller.Evictions(t, sick); len(sent) > 0 {
			return fmt.Errorf("evictions: %v", sent)
		}
		return nil
	})
	node.Signal(t, sick, syscall.SIGKILL)
	realcluster.Eventually(t, time.Minute, "the Pod is gone", func() error {
		if _, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), sick.Name, metav1.GetOptions{}); err == nil {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	suspend(false)
	next := workload.AwaitRunning(t, cluster, namespace, name, 1)[0]
	if device := deviceOf(t, next); device == bad {
		t.Errorf("resumed, it runs on %s again", device)
	}
	node.Signal(t, next, syscall.SIGUSR2)
	expectComplete(t, namespace, 0, 1)
	if sent := jobWrites(t, controller, namespace); len(sent) > 0 || *jobNow(t, namespace).Spec.BackoffLimit != 0 {
		t.Errorf("the Job was written: %v, limit %d", sent, *jobNow(t, namespace).Spec.BackoffLimit)
	}
	if evicted := controller.EvictedIn(t, namespace); evicted != 0 {
		t.Errorf("%d evictions were granted", evicted)
	}
}

func TestTheOldManifestAppliedBetweenCreditAndEvictionIsSeenAndHoldsThePod(t *testing.T) {
	t.Parallel()
	namespace, name := cluster.Namespace(t), jobName()
	plugin := node.NewPlugin(t, 2)
	manifest := fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s}
spec:
  backoffLimit: 0
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "registry.test/pause:1", resources: {limits: {%[2]s: 1}}}]
`, name, plugin.Resource)
	apply := func() {
		if out, err := cluster.Kubectl(manifest, "apply", "--namespace", namespace, "-f", "-"); err != nil {
			t.Fatal(out, err)
		}
	}
	apply()
	sick := workload.AwaitRunning(t, cluster, namespace, name, 1)[0]
	bad := deviceOf(t, sick)
	controller := watchOver(t, namespace, retries("settle: 60s")) // so long that even a loaded machine applies before the eviction
	plugin.Set(t, bad, "Unhealthy")
	awaitLimit(t, namespace, 1)
	apply()
	if limit := *jobNow(t, namespace).Spec.BackoffLimit; limit != 0 {
		t.Fatalf("kubectl apply left the limit at %d", limit)
	}
	awaitVerdict(t, controller, 0, name, "CreditReverted", "")
	story.AwaitEvent(t, cluster, namespace, name, "CreditReverted")
	awaitVerdict(t, controller, 0, sick.Name, "NotCreditable", "")
	controller.Stays(t, sick, 75*time.Second)
	if job := jobNow(t, namespace); *job.Spec.BackoffLimit != 0 || len(job.Status.Conditions) > 0 {
		t.Errorf("its limit is %d, and it is %+v", *job.Spec.BackoffLimit, job.Status.Conditions)
	}
	if sent := jobWrites(t, controller, namespace); accepted(sent) != 1 {
		t.Errorf("the Job was written: %v", sent)
	}
	node.Signal(t, sick, syscall.SIGUSR2)
	expectComplete(t, namespace, 0, 1)
}
