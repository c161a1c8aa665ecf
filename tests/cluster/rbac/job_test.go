package rbac

import (
	"net/http"
	"strings"
	"testing"
	"time"

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
	if sample := `dhc_actions_total{action="PatchJob",outcome="Forbidden"}`; controller.Metric(t, sample) < 1 {
		t.Errorf("%s is not counted", sample)
	}
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
