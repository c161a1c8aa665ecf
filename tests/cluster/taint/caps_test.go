package taint

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// evicted counts the evictions of Pods that the API server accepted.
func evicted(t *testing.T, controller story.Run, pods []corev1.Pod) (count int) {
	t.Helper()
	for _, pod := range pods {
		count += controller.Evictions(t, pod)[http.StatusCreated]
	}
	return count
}

// awaitAny waits until some Pod has the verdict.
func awaitAny(t *testing.T, controller *dhc.Controller, reason string) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, "a Pod has the verdict "+reason, func() error {
		verdicts := controller.Verdicts(t)
		for _, verdict := range verdicts {
			if verdict.Subject.Kind == "Pod" && verdict.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("there are %+v", verdicts)
	})
}

// Without the right to evict, each of three lives ends by SIGKILL after its charge was written and before the eviction; then four more lives
// that may evict end likewise. One eviction a day is allowed, and one is all that happens.
func TestCapsHoldOverSIGKILLBetweenTheChargeAndTheEviction(t *testing.T) {
	forget(t, cluster)
	namespace := cluster.Namespace(t)
	resource := "example.com/" + realcluster.Unique("gpu")
	ids := []string{"gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-5", "gpu-6", "gpu-7"}
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{resource: ids}})
	pods := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 2, Resource: resource}.Create(t, cluster)
	manifests, err := dhc.ReadManifests(cluster)
	must(t, err)
	may := manifests.AccountWithout(t, cluster)
	mayNot := manifests.AccountWithout(t, cluster, dhc.Verb{Resource: "pods/eviction", Verb: "create"})
	settings := func(account string) dhc.Settings {
		return dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, account, ""), InCluster: true, Policy: dhc.Policy{Namespace: namespace,
			Caps: "{cluster: {percent: 100}, node: {percent: 100}, perDay: {percent: 0, atLeast: 1}}"}.Text()}
	}
	for _, pod := range pods {
		id, _ := workload.Device(pod)
		node.Break(t, resource, id)
	}
	for range 3 {
		controller := dhc.StartReady(t, settings(mayNot))
		story.AwaitState(t, cluster, `"pods":{"`)
		awaitAny(t, controller, "Refused")
		controller.Kill()
	}
	gone := func() (count int) {
		for _, pod := range pods {
			now, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
			if err != nil || now.UID != pod.UID || now.DeletionTimestamp != nil {
				count++
			}
		}
		return count
	}
	if count := gone(); count != 0 {
		t.Fatalf("%d Pods went before anybody had the right to evict them", count)
	}
	for range 4 {
		controller := dhc.StartReady(t, settings(may))
		realcluster.Eventually(t, time.Minute, "one Pod is evicted", func() error {
			if count := gone(); count != 1 {
				return fmt.Errorf("%d Pods went", count)
			}
			return nil
		})
		awaitAny(t, controller, "CapReached")
		controller.Kill()
	}
	if count := gone(); count != 1 {
		t.Errorf("%d Pods went, and one is allowed a day", count)
	}
}

// A newer version has written the state: it is left as it is, and nobody is evicted until an operator deletes it.
func TestAStateOfANewerVersionIsLeftAlone(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	const newer = `{"version":99,"devices":"?"}`
	state := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: dhc.State}, Data: map[string]string{entry: newer}}
	_, err := cluster.Client.CoreV1().ConfigMaps(dhc.Namespace).Create(t.Context(), state, metav1.CreateOptions{FieldManager: "newer"})
	must(t, err)
	controller := r.start(t, dhc.Policy{Recover: "{hold: 24h}"})
	r.breaks(device)
	r.awaitRule(t, device, "NoSchedule")
	controller.AwaitVerdict(t, dhc.State, "StateFromNewerVersion")
	controller.AwaitVerdict(t, sick.Name, "WaitingForCharge")
	now, err := cluster.Client.CoreV1().ConfigMaps(dhc.Namespace).Get(t.Context(), dhc.State, metav1.GetOptions{})
	must(t, err)
	if now.Data[entry] != newer {
		t.Errorf("the state is %q", now.Data[entry])
	}
	if count := evicted(t, controller, []corev1.Pod{sick}); count != 0 {
		t.Errorf("%d evictions were sent", count)
	}
	must(t, cluster.Client.CoreV1().ConfigMaps(dhc.Namespace).Delete(t.Context(), dhc.State, metav1.DeleteOptions{}))
	story.AwaitReplacement(t, cluster, sick, 1)
}

// The right to write the state is taken away while the controller runs: said, and nobody is evicted until it is back.
func TestAStateThatCannotBeWrittenHoldsEvictions(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	manifests, err := dhc.ReadManifests(cluster)
	must(t, err)
	account := manifests.AccountWithout(t, cluster)
	settings := r.settings(t, dhc.Policy{EvictAfter: "3s", Recover: "{hold: 24h}"})
	settings.Kubeconfig = dhc.Kubeconfig(t, cluster, account, "")
	controller := dhc.StartReady(t, settings)
	roles, err := cluster.Client.RbacV1().Roles(dhc.Namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	allow := func(verbs string) {
		for _, role := range roles.Items {
			for i, rule := range role.Rules {
				if len(role.Name) > len(account) && role.Name[:len(account)] == account && len(rule.ResourceNames) == 1 && rule.ResourceNames[0] == dhc.State {
					body := fmt.Sprintf(`[{"op":"replace","path":"/rules/%d/verbs","value":%s}]`, i, verbs)
					_, err := cluster.Client.RbacV1().Roles(dhc.Namespace).Patch(t.Context(), role.Name, types.JSONPatchType, []byte(body), metav1.PatchOptions{})
					must(t, err)
				}
			}
		}
	}
	allow(`["list","watch"]`)
	// The API server's authorizer learns of it by a watch of its own.
	realcluster.Eventually(t, 20*time.Second, "the right is gone", func() error {
		out, _ := cluster.Kubectl("", "auth", "can-i", "patch", "configmaps/"+dhc.State, "--namespace="+dhc.Namespace, "--as=system:serviceaccount:"+dhc.Namespace+":"+account)
		if len(out) >= 2 && out[:2] == "no" {
			return nil
		}
		return fmt.Errorf("%s", out)
	})
	r.breaks(device)
	controller.AwaitVerdict(t, dhc.State, "StateNotSaved")
	controller.AwaitVerdict(t, sick.Name, "WaitingForCharge")
	now, err := cluster.Client.CoreV1().Pods(r.namespace).Get(t.Context(), sick.Name, metav1.GetOptions{})
	if err != nil || now.DeletionTimestamp != nil {
		t.Errorf("the Pod goes: %v", err)
	}
	allow(`["list","watch","create","patch"]`)
	realcluster.Eventually(t, 5*time.Minute, "the Pod goes once the state can be written", func() error {
		now, err := cluster.Client.CoreV1().Pods(r.namespace).Get(t.Context(), sick.Name, metav1.GetOptions{})
		if err == nil && now.UID == sick.UID && now.DeletionTimestamp == nil {
			return fmt.Errorf("it is still there")
		}
		return nil
	})
}
