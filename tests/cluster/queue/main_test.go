// Package queue tells what becomes of a Job in a queue of the real Kueue, and of its Workload, when a device of one of its pods fails.
package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

var cluster *realcluster.ControlPlane

func TestMain(m *testing.M) {
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) error {
		cluster = planes[0]
		return dhc.InstallOn(planes)
	}, realcluster.Options{Name: "queue", Kueue: true})
}

// place is where one story happens, beside others: a namespace with a queue, and a node whose devices no other node has.
type place struct {
	namespace, gpu string
	node           *fakenode.Node
	admitted       workload.QueuedWorkload
}

// admit runs a Job of two pods in a queue, on a node of so many devices.
func admit(t *testing.T, devices int, backoffLimit int32, change func(*batchv1.Job)) (p place, pods []corev1.Pod) {
	t.Helper()
	t.Parallel()
	p = place{namespace: cluster.Namespace(t), gpu: realcluster.Unique("example.com/gpu")}
	var ids []string
	for i := range devices {
		ids = append(ids, fmt.Sprint("gpu-", i))
	}
	p.node = fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{p.gpu: ids}, Termination: time.Second})
	workload.Queue(t, cluster, p.namespace, "team", p.gpu, devices)
	pods = workload.Job{Namespace: p.namespace, Name: "train", Parallelism: 2, BackoffLimit: backoffLimit, Resource: p.gpu, Change: func(job *batchv1.Job) {
		job.Labels = map[string]string{workload.QueueLabel: "team"}
		if change != nil {
			change(job)
		}
	}}.Create(t, cluster)
	// Kueue takes a pod that goes before this for one that was slow to come.
	realcluster.Eventually(t, time.Minute, "Kueue has admitted the Job and seen its pods run", func() error {
		if p.admitted = workload.Queued(t, cluster, p.namespace); p.admitted.True("Admitted") == nil || p.admitted.True("PodsReady") == nil {
			return fmt.Errorf("it says %+v", p.admitted.Conditions)
		}
		return nil
	})
	return p, pods
}

// start runs a controller that gives retries back where it can.
func (p place) start(t *testing.T) story.Run {
	t.Helper()
	return story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: p.namespace, JobRetry: "{settle: 6s}", Full: "{wait: 0s}"}.Text()})
}

// breakUnder makes the device that a pod holds Unhealthy.
func (p place) breakUnder(t *testing.T, pod corev1.Pod) {
	t.Helper()
	p.node.Break(t, p.gpu, story.DeviceOf(t, cluster, pod))
}

func (p place) job(t *testing.T) *batchv1.Job {
	t.Helper()
	job, err := cluster.Client.BatchV1().Jobs(p.namespace).Get(t.Context(), "train", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// expectAdmitted says what the loss of a pod has cost the Job, that it goes on without a write of ours, and that its Workload is the same as before and
// was never taken back.
func (p place) expectAdmitted(t *testing.T, r story.Run, failures int32) {
	t.Helper()
	realcluster.Eventually(t, 30*time.Second, fmt.Sprintf("the Job has counted %d losses", failures), func() error {
		if counted := p.job(t).Status.Failed; counted != failures {
			return fmt.Errorf("they are %d", counted)
		}
		return nil
	})
	job := p.job(t)
	if *job.Spec.Suspend || slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Status == corev1.ConditionTrue }) {
		t.Errorf("the Job is suspended: %t, %+v", *job.Spec.Suspend, job.Status.Conditions)
	}
	for _, write := range r.Requests(t, func(e realcluster.AuditEvent) bool {
		return e.Writes() && e.ObjectRef.Resource == "jobs" && e.ObjectRef.Namespace == p.namespace
	}) {
		t.Errorf("a queued Job was written: %s", write.Verb)
	}
	now := workload.Queued(t, cluster, p.namespace)
	before := p.admitted.True("Admitted").LastTransitionTime
	if admitted := now.True("Admitted"); now.UID != p.admitted.UID || admitted == nil || !admitted.LastTransitionTime.Equal(&before) || now.True("Evicted") != nil {
		t.Errorf("the Workload is %+v", now)
	}
}
