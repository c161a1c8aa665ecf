// Package joblag tells what happens to a Job while the controller manager sees an older one.
package joblag

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

const gpu = "example.com/gpu"

var cluster *realcluster.ControlPlane

func TestMain(m *testing.M) {
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) error {
		cluster = planes[0]
		return dhc.InstallOn(planes)
	}, realcluster.Options{Name: "job-lag", ControllerProxy: true})
}

func jobWatch(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/jobs") && r.URL.Query().Get("watch") != ""
}

// loseAPod runs a Job of two pods without a retry, breaks the device of one while the controller manager's Job watch is held back, and
// lets the watch go on when `until` says so.
func loseAPod(t *testing.T, settle string, until func(t *testing.T, r story.Run, sick, neighbour corev1.Pod)) (failed bool, r story.Run, neighbour corev1.Pod) {
	t.Helper()
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{gpu: {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}, Termination: time.Second})
	pods := workload.Job{Namespace: namespace, Name: "train", Parallelism: 2, Resource: gpu}.Create(t, cluster)
	sick, neighbour := story.Holder(t, pods, "gpu-0"), story.Holder(t, pods, "gpu-1")
	// A Job controller that has not read back its own last write does nothing at all until it has.
	realcluster.Eventually(t, 30*time.Second, "the Job controller has counted both pods as ready", func() error {
		job, err := cluster.Client.BatchV1().Jobs(namespace).Get(t.Context(), "train", metav1.GetOptions{})
		if err == nil && (job.Status.Ready == nil || *job.Status.Ready != 2) {
			err = fmt.Errorf("status %+v", job.Status)
		}
		return err
	})
	r = story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, JobRetry: "{settle: " + settle + "}"}.Text()})
	cluster.ControllerProxy.Hold(jobWatch)
	t.Cleanup(func() { cluster.ControllerProxy.Hold(nil) })
	node.Break(t, gpu, "gpu-0")
	realcluster.Eventually(t, 30*time.Second, "the Job has its retry", func() error {
		job, err := cluster.Client.BatchV1().Jobs(namespace).Get(t.Context(), "train", metav1.GetOptions{})
		if err == nil && *job.Spec.BackoffLimit != 1 {
			err = fmt.Errorf("it has not")
		}
		return err
	})
	until(t, r, sick, neighbour)
	cluster.ControllerProxy.Hold(nil)
	realcluster.Eventually(t, 60*time.Second, "the Job has failed, or runs on with two pods", func() error {
		job, err := cluster.Client.BatchV1().Jobs(namespace).Get(t.Context(), "train", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range job.Status.Conditions {
			failed = failed || condition.Type == "FailureTarget" || condition.Type == "Failed"
		}
		if running := workload.Pods(t, cluster, namespace, "train"); !failed && (job.Status.Failed != 1 || job.Status.Active != 2) {
			return fmt.Errorf("%d failed, %d active, %d pods", job.Status.Failed, job.Status.Active, len(running))
		}
		return nil
	})
	return failed, r, neighbour
}

func TestAControllerManagerBehindByLessThanTheSettleTimeCostsTheJobNothing(t *testing.T) {
	failed, controller, neighbour := loseAPod(t, "20s", func(t *testing.T, r story.Run, sick, _ corev1.Pod) {
		r.Stays(t, sick, 5*time.Second) // so long the controller manager has not read the credit
	})
	if failed {
		t.Error("the Job failed")
	}
	story.ExpectUntouched(t, controller, neighbour)
}

// That the settle time is what saves the Job: seen on 1.37.1, and again here.
func TestWithTooShortASettleTimeTheSameLagCostsAHealthyPod(t *testing.T) {
	loseAPod(t, "1s", func(t *testing.T, _ story.Run, _, neighbour corev1.Pod) {
		realcluster.Eventually(t, 30*time.Second, "the neighbour on its healthy device is killed", func() error {
			now, err := cluster.Client.CoreV1().Pods(neighbour.Namespace).Get(t.Context(), neighbour.Name, metav1.GetOptions{})
			if err == nil && now.DeletionTimestamp == nil && now.Status.Phase == corev1.PodRunning {
				return fmt.Errorf("it runs")
			}
			return nil
		})
	})
}
