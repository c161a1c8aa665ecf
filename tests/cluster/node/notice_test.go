package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/workload"
)

// volumes gives a Job's only container the notice as a file, and a folder of this machine for its checkpoints.
func volumes(folder string) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		pod, kind := &job.Spec.Template.Spec, corev1.HostPathDirectory
		pod.Volumes = []corev1.Volume{
			{Name: "device-health", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "notice", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['device-health.io/notice']"}}}}}},
			{Name: "checkpoints", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder, Type: &kind}}},
		}
		pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "device-health", MountPath: "/etc/device-health"}, {Name: "checkpoints", MountPath: "/checkpoints"}}
	}
}

// checkpoints is a folder for the trainers of a namespace. They are gone before it is removed: one that runs writes into it meanwhile.
func checkpoints(t *testing.T, namespace string) string {
	t.Helper()
	folder := t.TempDir()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		background, soon := metav1.DeletePropagationBackground, int64(1)
		if err := cluster.Client.BatchV1().Jobs(namespace).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{}); err != nil {
			t.Errorf("the trainers' Jobs: %v", err)
		}
		realcluster.Eventually(t, time.Minute, "the trainers are gone", func() error {
			pods := cluster.Client.CoreV1().Pods(namespace)
			if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &soon}, metav1.ListOptions{}); err != nil {
				return err
			}
			left, err := pods.List(ctx, metav1.ListOptions{})
			if err == nil && len(left.Items) > 0 {
				err = fmt.Errorf("%d are left", len(left.Items))
			}
			return err
		})
	})
	return folder
}

// steps is a number that a trainer keeps in its folder; 0 while it has kept none.
func steps(folder, name string) int {
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		return 0
	}
	number, _ := strconv.Atoi(string(text))
	return number
}

// A trainer on a real node: a step every 200 ms, a checkpoint that takes 2 s, by itself every 10 minutes, and a device that breaks after 20 s. The
// table that it prints stands in docs/evaluation.md.
func TestATrainerThatIsToldOfItsEvictionLosesNoStepAndOneThatIsNotLosesAllSinceItsCheckpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, evict string
		arguments   []string
		told        bool
	}{
		{"with the hand-shake", "{after: 0s, notice: {deadline: 40s}}", []string{"train", "/checkpoints", "listen"}, true},
		{"without", "{after: 0s}", []string{"train", "/checkpoints"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			namespace, plugin := cluster.Namespace(t), node.NewPlugin(t, 3)
			folder := checkpoints(t, namespace)
			name := jobName()
			pod := workload.Job{Namespace: namespace, Name: name, Parallelism: 1, Resource: plugin.Resource, Arguments: c.arguments, Change: volumes(folder)}.Create(t, cluster)[0]
			controller := watchOver(t, namespace, policy{Rest: "after: 0s\nevict: " + c.evict + "\njobRetry: {settle: 3s}"})
			realcluster.Eventually(t, 2*time.Minute, "the trainer has done 100 steps", func() error {
				if now := steps(folder, "now"); now < 100 {
					return fmt.Errorf("it has done %d", now)
				}
				return nil
			})
			plugin.Set(t, deviceOf(t, pod), "Unhealthy")
			broken := time.Now()
			var again time.Time
			realcluster.Eventually(t, 3*time.Minute, "another Pod has done as many steps", func() error {
				text, err := os.ReadFile(filepath.Join(folder, "again"))
				if err != nil {
					return err
				}
				again, err = time.Parse(time.RFC3339Nano, string(text))
				return err
			})
			reached, saved := steps(folder, "reached"), steps(folder, "step")
			t.Logf("TABLE | %s | %d | %d | %.0f s |", c.name, reached, reached-saved, again.Sub(broken).Seconds())
			evictions := len(controller.Evictions(t, pod))
			if c.told && (saved < 100 || saved != reached || evictions != 0) {
				t.Errorf("saved %d of %d steps, %d evictions", saved, reached, evictions)
			}
			if !c.told && (saved != 0 || reached < 100 || evictions == 0) {
				t.Errorf("saved %d of %d steps, %d evictions", saved, reached, evictions)
			}
			if failed := jobNow(t, namespace); len(failed.Status.Conditions) != 0 || *failed.Spec.BackoffLimit != 1 {
				t.Errorf("the Job: limit %d, %+v", *failed.Spec.BackoffLimit, failed.Status.Conditions)
			}
		})
	}
}
