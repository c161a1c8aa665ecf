// Package owners tells what becomes of the groups of JobSet and LeaderWorkerSet, with their real controllers, when a device of one of their pods fails.
package owners

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

// cluster has the controllers of JobSet and LeaderWorkerSet, grouping serves PodGroups, where the release has them.
var cluster, grouping *realcluster.ControlPlane

func TestMain(m *testing.M) {
	wanted := []realcluster.Options{{Name: "owners", Owners: true}}
	if realcluster.Release().Has(realcluster.PodGroups) {
		wanted = append(wanted, realcluster.Options{Name: "grouping", RuntimeConfig: realcluster.Release().ServesPodGroups(), FeatureGates: genericWorkload, ControllerGates: genericWorkload})
	}
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) error {
		if cluster = planes[0]; len(planes) > 1 {
			grouping = planes[1]
		}
		return dhc.InstallOn(planes)
	}, wanted...)
}

var genericWorkload = map[string]bool{"GenericWorkload": true, "DRAWorkloadResourceClaims": true}

// place is where one story happens, beside others: a namespace, and a node whose devices, of a kind that no other node has, are enough for a
// group and its replacement.
type place struct {
	namespace, gpu string
	node           *fakenode.Node
}

func newPlace(t *testing.T) place {
	t.Helper()
	return newPlaceFor(t, 8)
}

func newPlaceFor(t *testing.T, devices int) place {
	t.Helper()
	return startPlace(t, devices, fakenode.Spec{Termination: time.Second})
}

// newPlaceStepByStep is one where the program of an evicted pod ends with a code, when the story says so.
func newPlaceStepByStep(t *testing.T, devices int, exits int32) place {
	t.Helper()
	return startPlace(t, devices, fakenode.Spec{StepByStep: true, ExitCode: exits})
}

func startPlace(t *testing.T, devices int, spec fakenode.Spec) place {
	t.Helper()
	t.Parallel()
	p := place{namespace: cluster.Namespace(t), gpu: realcluster.Unique("example.com/gpu")}
	var ids []string
	for i := range devices {
		ids = append(ids, fmt.Sprint("gpu-", i))
	}
	spec.Plugin = map[string][]string{p.gpu: ids}
	p.node = fakenode.Start(t, cluster, spec)
	return p
}

// start runs a controller that gives retries back, with more keys of jobRetry.
func (p place) start(t *testing.T, rules string) story.Run {
	t.Helper()
	return story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: p.namespace, JobRetry: "{settle: 6s" + rules + "}", Full: "{wait: 0s}"}.Text()})
}

// breakUnder makes the device that a pod holds Unhealthy.
func (p place) breakUnder(t *testing.T, pod corev1.Pod) {
	t.Helper()
	p.node.Break(t, p.gpu, story.DeviceOf(t, cluster, pod))
}

// member is the pod of the group that is meant.
func member(t *testing.T, pods []corev1.Pod, is func(corev1.Pod) bool) corev1.Pod {
	t.Helper()
	found := slices.IndexFunc(pods, is)
	if found < 0 {
		t.Fatal("the group has no such pod")
	}
	return pods[found]
}

// named selects the pod of a name.
func named(name string) func(corev1.Pod) bool {
	return func(pod corev1.Pod) bool { return pod.Name == name }
}

// indexed selects the pod of an index of its Job.
func indexed(index string) func(corev1.Pod) bool {
	return func(pod corev1.Pod) bool { return pod.Annotations[batchv1.JobCompletionIndexAnnotation] == index }
}

// awaitMembers waits until the group runs as a whole again, kept of its pods being the same as before.
func awaitMembers(t *testing.T, before []corev1.Pod, kept int) {
	t.Helper()
	group := before[0].Labels["app"]
	realcluster.Eventually(t, time.Minute, fmt.Sprintf("%d pods run, %d of them those of before", len(before), kept), func() error {
		same, running := 0, 0
		for _, pod := range workload.Pods(t, cluster, before[0].Namespace, group) {
			if slices.ContainsFunc(before, func(old corev1.Pod) bool { return old.UID == pod.UID }) {
				same++
			}
			if pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if same != kept || running != len(before) {
			return fmt.Errorf("%d run, %d of before are there: %s", running, same, workload.Describe(t, cluster, before[0].Namespace, group))
		}
		return nil
	})
}

// expectFailures says how many losses the Job of a JobSet has counted, and that it goes on, without a write of ours.
func expectFailures(t *testing.T, r story.Run, set workload.JobSet, count int32) {
	t.Helper()
	var job *batchv1.Job
	realcluster.Eventually(t, 20*time.Second, fmt.Sprintf("the Job has counted %d losses", count), func() (err error) {
		if job, err = cluster.Client.BatchV1().Jobs(set.Namespace).Get(t.Context(), set.Job(), metav1.GetOptions{}); err != nil {
			return err
		}
		if job.Status.Failed != count {
			return fmt.Errorf("they are %d", job.Status.Failed)
		}
		return nil
	})
	for _, condition := range job.Status.Conditions {
		t.Errorf("the Job is %s: %s", condition.Type, condition.Message)
	}
	if *job.Spec.BackoffLimit != set.BackoffLimit {
		t.Errorf("its backoffLimit is %d", *job.Spec.BackoffLimit)
	}
	expectNoJobWrite(t, r, set.Namespace)
}

func expectNoJobWrite(t *testing.T, r story.Run, namespace string) {
	t.Helper()
	for _, write := range r.Requests(t, func(e realcluster.AuditEvent) bool {
		return e.Writes() && e.ObjectRef.Resource == "jobs" && e.ObjectRef.Namespace == namespace
	}) {
		t.Errorf("a Job of another controller was written: %s %s", write.Verb, write.ObjectRef.Name)
	}
}

// expectRestarts says what the JobSet's controller has counted, and that it goes on.
func expectRestarts(t *testing.T, set workload.JobSet, restarts, counted int) {
	t.Helper()
	if now := set.Status(t, cluster); now != (workload.JobSetStatus{Restarts: restarts, RestartsCountTowardsMax: counted}) {
		t.Errorf("the JobSet has %d restarts, %d of which count, and is %q", now.Restarts, now.RestartsCountTowardsMax, now.TerminalState)
	}
}
