package rbac

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/workload"
)

// Without it no Job gets a retry back, so its Pod is held, and everything else goes on.
func TestWithoutPatchOfJobsNoRetryIsGivenAndThePodIsHeld(t *testing.T) {
	namespace := cluster.Namespace(t)
	resource := "example.com/" + realcluster.Unique("gpu")
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{resource: {"gpu-0", "gpu-1"}}})
	sick := workload.Job{Namespace: namespace, Name: "train", Parallelism: 1, Resource: resource}.Create(t, cluster)[0]
	account, since := manifests.AccountWithout(t, cluster, dhc.Verb{Group: "batch", Resource: "jobs", Verb: "patch"}), time.Now()
	policy := strings.Replace(dhc.Policy{Namespace: namespace}.Text(), "\n  evict:", "\n  jobRetry: {settle: 1s}\n  evict:", 1)
	controller := dhc.StartReady(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, account, ""), Policy: policy, InCluster: true})
	controller.AwaitSays(t, "forbidden: jobs.batch patch (needed by: ")
	node.Break(t, resource, "gpu-0")
	awaitAnswer(t, account, since, "patch jobs", http.StatusForbidden)
	controller.AwaitVerdict(t, sick.Name, "WaitingForCredit")
	awaitCounted(t, controller, `device_health_actions_total{action="PatchJob",outcome="Forbidden"}`)
	awaitAnswer(t, account, since, "patch pods/status", http.StatusOK)
	awaitAnswer(t, account, since, "create events", http.StatusCreated)
	now, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), sick.Name, metav1.GetOptions{})
	if err != nil || now.DeletionTimestamp != nil || len(answers(t, account, since)["create pods/eviction"]) > 0 {
		t.Errorf("the Pod goes: %v", err)
	}
	if code, text := controller.Readyz(t); code != http.StatusOK {
		t.Errorf("a writing verb is no matter of readiness: %d %s", code, text)
	}
}

// What `recreate: Once` needs is a component of its own: without it a dead Job stays dead, which is said on it, and all else goes on.
func TestADeadJobIsMadeAgainOnlyWithTheComponentForIt(t *testing.T) {
	dhc.Apply(t, cluster, "manifests/components/recreate-jobs/rbac-recreate-jobs.yaml")
	for name, granted := range map[string]bool{"without it": false, "with it": true} {
		t.Run(name, func(t *testing.T) {
			namespace := cluster.Namespace(t)
			resource := "example.com/" + realcluster.Unique("gpu")
			node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{resource: {"gpu-0", "gpu-1"}}})
			sick := workload.Job{Namespace: namespace, Name: "train", Parallelism: 1, Resource: resource}.Create(t, cluster)[0]
			account, since := manifests.AccountWithout(t, cluster), time.Now()
			if granted {
				out, err := cluster.Kubectl("", "create", "clusterrolebinding", account+"-recreate", "--clusterrole=device-health-controller-recreate-jobs",
					"--serviceaccount="+dhc.Namespace+":"+account)
				if err != nil {
					t.Fatal(out, err)
				}
			}
			policy := dhc.Policy{Namespace: namespace, After: "30m", JobRetry: "{settle: 1s, recreate: Once}"}.Text()
			controller := dhc.StartReady(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, account, ""), Policy: policy, InCluster: true})
			node.Break(t, resource, "gpu-0")
			controller.AwaitVerdict(t, sick.Name, "WaitingForWindow")
			controller.Signal(t, syscall.SIGSTOP) // so that the Job dies before its retry is given back
			node.SetPodStatus(sick.UID, "phase", "Failed")
			realcluster.Eventually(t, time.Minute, "the Job has failed", func() error {
				job, err := cluster.Client.BatchV1().Jobs(namespace).Get(t.Context(), "train", metav1.GetOptions{})
				if err == nil && !slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobFailed }) {
					err = fmt.Errorf("it is %+v", job.Status)
				}
				return err
			})
			controller.Signal(t, syscall.SIGCONT)
			controller.AwaitVerdict(t, "train", "JobDiedOfDevice")
			awaitAnswer(t, account, since, "patch jobs", http.StatusOK)
			awaitAnswer(t, account, since, "create events", http.StatusCreated)
			if granted {
				awaitAnswer(t, account, since, "create jobs", http.StatusCreated)
				return
			}
			if said := controller.AwaitVerdict(t, "train", "Refused").Message; !strings.Contains(said, "jobRetry.recreate could not make this Job again") || !strings.Contains(said, "forbidden") {
				t.Errorf("it says %q", said)
			}
			awaitCounted(t, controller, `device_health_actions_total{action="RecreateJob",outcome="Forbidden"}`)
			list, err := cluster.Client.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 {
				t.Errorf("there are %d Jobs: %v", len(list.Items), err)
			}
			if code, text := controller.Readyz(t); code != http.StatusOK {
				t.Errorf("a writing verb is no matter of readiness: %d %s", code, text)
			}
		})
	}
}
