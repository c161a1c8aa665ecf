package rbac

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// affected is a Pod of a custom owner on a device that breaks, under the given account.
func affected(t *testing.T, kind workload.CustomKind, resource, account string) (controller *dhc.Controller, pod corev1.Pod, message string) {
	t.Helper()
	namespace := cluster.Namespace(t)
	kind.Create(t, cluster)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{resource: {"gpu-0", "gpu-1"}}, Termination: time.Second})
	pod = kind.Own(t, cluster, namespace, "work", resource)
	device, _ := workload.Device(pod)
	controller = dhc.StartReady(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, account, ""), Policy: dhc.Policy{Namespace: namespace}.Text()})
	node.Break(t, resource, device)
	realcluster.Eventually(t, 2*time.Minute, "the verdict says what is missing", func() error {
		message = controller.AwaitVerdict(t, pod.Name, "OptOutUnknown").Message
		if !strings.Contains(message, "could not be read") {
			return fmt.Errorf("it says %q", message)
		}
		return nil
	})
	return controller, pod, message
}

func TestAKnownOwnerThatMayNotBeReadIsNamedAtTheStartAndHoldsItsPods(t *testing.T) {
	account := manifests.AccountWithout(t, cluster, dhc.Verb{Group: "ray.io", Resource: "rayclusters", Verb: "get"})
	controller, _, message := affected(t, workload.CustomKind{Group: "ray.io", Kind: "RayCluster"}, "example.com/ray-gpu", account)
	controller.AwaitSays(t, "forbidden: rayclusters.ray.io get (needed by: opt-out)")
	if want := `{apiGroups: ["ray.io"], resources: [rayclusters], verbs: [get]}`; !strings.Contains(message, want) {
		t.Errorf("the verdict does not hold the rule %s: %s", want, message)
	}
}

func TestTheRuleOfTheVerdictInALabelledClusterRoleLetsThePodGo(t *testing.T) {
	_, pod, message := affected(t, workload.CustomKind{Group: "owners.example.com", Kind: "Trainer"}, "example.com/trainer-gpu", dhc.Account)
	_, rest, found := strings.Cut(message, "needs the rule ")
	rule, _, complete := strings.Cut(rest, " in a ClusterRole")
	if !found || !complete {
		t.Fatalf("no rule in %s", message)
	}
	role := "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: trainers, labels: {device-health.io/owners: \"true\"}}, rules: [" + rule + "]}"
	if _, err := cluster.Kubectl(role, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	story.AwaitGone(t, cluster, pod)
}
