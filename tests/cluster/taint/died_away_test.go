package taint

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// A Job's Pod dies on its bad device while no controller runs: the next one knows by the state what its device was like, and gives the
// retry back. Of a Pod whose device its kubelet called healthy before it died, it does not.
func TestAPodThatDiesOfItsDeviceWhileNoControllerRunsGetsItsJobTheRetryBack(t *testing.T) {
	for name, repaired := range map[string]bool{"bad to the end": false, "repaired before": true} {
		t.Run(name, func(t *testing.T) {
			forget(t, cluster)
			namespace := cluster.Namespace(t)
			resource := "example.com/" + realcluster.Unique("gpu")
			node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{resource: {"gpu-0", "gpu-1"}}, Termination: time.Second})
			sick := workload.Job{Namespace: namespace, Name: "train", Parallelism: 1, BackoffLimit: 3, Resource: resource}.Create(t, cluster)[0]
			// No incident opens within the test: what is credited has died first.
			policy := dhc.Policy{Namespace: namespace, After: "30m", JobRetry: "{settle: 3s}"}.Text()
			settings := dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, dhc.Account, ""), Policy: policy, InCluster: true}
			controller, began := story.Start(t, cluster, settings), time.Now()
			device, _ := workload.Device(sick)
			node.Break(t, resource, device)
			controller.AwaitVerdict(t, sick.Name, "WaitingForWindow")
			story.AwaitState(t, cluster, string(sick.UID))
			controller.Kill()

			if repaired {
				node.SetHealth(resource, device, "Healthy", "")
				story.AwaitHealth(t, cluster, sick, "Healthy")
			}
			node.SetPodStatus(sick.UID, "phase", "Failed")
			story.AwaitReplacement(t, cluster, sick, 1)

			controller = again(t, settings, began)
			if repaired {
				controller.AwaitReady(t)
				realcluster.Never(t, 8*time.Second, "the Job is left alone", func() error {
					if job := jobOf(t, namespace); *job.Spec.BackoffLimit != 3 || job.Annotations["device-health.io/losses"] != "" {
						return fmt.Errorf("backoffLimit is %d, the annotations are %v", *job.Spec.BackoffLimit, job.Annotations)
					}
					return nil
				})
				return
			}
			controller.AwaitVerdict(t, "train", "DiedOfDevice")
			story.AwaitEvent(t, cluster, namespace, "train", "DiedOfDevice")
			realcluster.Eventually(t, 20*time.Second, "the Job has the retry back", func() error {
				if job := jobOf(t, namespace); *job.Spec.BackoffLimit != 4 || !strings.Contains(job.Annotations["device-health.io/losses"], string(sick.UID)) {
					return fmt.Errorf("backoffLimit is %d, the annotations are %v", *job.Spec.BackoffLimit, job.Annotations)
				}
				return nil
			})
			controller.Kill()
			controller = again(t, settings, began)
			controller.AwaitVerdict(t, "train", "DiedOfDevice")
			if job := jobOf(t, namespace); *job.Spec.BackoffLimit != 4 {
				t.Errorf("after another restart backoffLimit is %d", *job.Spec.BackoffLimit)
			}
		})
	}
}

func jobOf(t *testing.T, namespace string) *batchv1.Job {
	t.Helper()
	job, err := cluster.Client.BatchV1().Jobs(namespace).Get(t.Context(), "train", metav1.GetOptions{})
	must(t, err)
	return job
}
