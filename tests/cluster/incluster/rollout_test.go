package incluster

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// The incident is held open by a budget, so that it is older than the update and outlives it.
func TestAnUpdateInTheMiddleOfAnIncidentGivesOneEviction(t *testing.T) {
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 3)
	pods := workload.Deployment{Namespace: namespace, Name: "work", Replicas: 2, Resource: plugin.Resource}.Create(t, cluster)
	workload.Budget(t, cluster, namespace, "work", 2)
	controller := underPolicy(t, dhc.Policy{Namespace: namespace})
	sick := pods[0]
	bad := deviceOf(t, sick)
	before := replicas(t)
	plugin.Set(t, bad, "Unhealthy")
	story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
	realcluster.Eventually(t, 30*time.Second, "the budget has refused an eviction", func() error { return refused(t, controller, sick) })

	restart(t)
	for _, now := range replicas(t) {
		if slices.ContainsFunc(before, func(old corev1.Pod) bool { return old.UID == now.UID }) {
			t.Errorf("%s was not updated", now.Name)
		}
	}
	who := leader(t)
	if err := cluster.Client.PolicyV1().PodDisruptionBudgets(namespace).Delete(t.Context(), "work", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expectOneEviction(t, controller, sick, pods[1])
	story.AwaitEvent(t, cluster, sick.Namespace, sick.Name, "Evicted")
	for _, e := range granted(t, controller, sick) {
		if e.Pod() != who {
			t.Errorf("%q evicted it, and %s leads", e.Pod(), who)
		}
	}
}

// Here nothing holds it: the eviction falls before, into or after the change of leaders, as it comes.
func TestAnUpdateAtTheMomentOfAFailureGivesOneEviction(t *testing.T) {
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 3)
	pods := workload.Deployment{Namespace: namespace, Name: "work", Replicas: 2, Resource: plugin.Resource}.Create(t, cluster)
	controller := underPolicy(t, dhc.Policy{Namespace: namespace, EvictAfter: "3s"})
	bad := deviceOf(t, pods[0])
	plugin.Set(t, bad, "Unhealthy")
	restart(t)
	expectOneEviction(t, controller, pods[0], pods[1])
}

// restart is a rolling update, to its end.
func restart(t *testing.T) {
	t.Helper()
	if _, err := cluster.Kubectl("", "rollout", "restart", "deployment/"+dhc.Account, "--namespace", dhc.Namespace); err != nil {
		t.Fatal(err)
	}
	if err := rolledOut(); err != nil {
		t.Fatal(err)
	}
	expectApart(t)
}

func expectOneEviction(t *testing.T, controller story.Run, sick, neighbour corev1.Pod) {
	t.Helper()
	story.AwaitReplacement(t, cluster, sick, 2)
	if sent := granted(t, controller, sick); len(sent) != 1 {
		t.Errorf("%d evictions of %s were granted", len(sent), sick.Name)
	}
	if all := controller.EvictedIn(t, sick.Namespace); all != 1 {
		t.Errorf("%d evictions were granted in the Namespace", all)
	}
	story.ExpectUntouched(t, controller, neighbour)
	expectReplays(t, sick)
}

func evictions(t *testing.T, controller story.Run, pod corev1.Pod, code int) []realcluster.AuditEvent {
	t.Helper()
	return controller.Requests(t, func(e realcluster.AuditEvent) bool {
		return e.Verb == "create" && e.ObjectRef.Subresource == "eviction" && e.ObjectRef.Namespace == pod.Namespace && e.ObjectRef.Name == pod.Name && e.Response.Code == code
	})
}

func granted(t *testing.T, controller story.Run, pod corev1.Pod) []realcluster.AuditEvent {
	t.Helper()
	return evictions(t, controller, pod, http.StatusCreated)
}

func refused(t *testing.T, controller story.Run, pod corev1.Pod) error {
	t.Helper()
	if len(evictions(t, controller, pod, http.StatusTooManyRequests)) == 0 {
		return fmt.Errorf("there is none")
	}
	return nil
}
