package node

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
)

// The same with a watch of nodes that lags: the pod's false Healthy arrives before the capacity of 0 that gives the lie to it.
func TestAKubeletRestartIsNoRecoveryAlsoWhenTheNodesArriveAfterThePods(t *testing.T) {
	namespace := cluster.Namespace(t)
	plugin := second.NewPlugin(t, 3)
	pods := two(t, namespace, plugin.Resource)
	sick, bad := pods[0], deviceOf(t, pods[0])
	proxy, err := realcluster.NewProxy(cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	controller := story.Start(t, cluster, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, dhc.Account, proxy.Server),
		Policy: dhc.Policy{Namespace: namespace, EvictAfter: "40s"}.Text()})
	seen := story.WatchPod(t, cluster, sick)
	plugin.Set(t, bad, "Unhealthy")
	opened := story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
	plugin.AwaitCapacity(t, 3, 2)
	proxy.Hold(func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/nodes") && r.URL.Query().Get("watch") != ""
	})
	if err := second.StopKubelet(); err != nil {
		t.Fatal(err)
	}
	if err := second.StartKubelet(); err != nil {
		t.Fatal(err)
	}
	awaitHealth(t, sick, "Healthy")
	awaitVerdict(t, controller, time.Minute, sick.Name, "WaitingWhileUnknown", bad) // it has heard the pod, and not the node
	plugin.AwaitCapacity(t, 0, 0)
	proxy.Hold(nil)
	controller.Stays(t, sick, 45*time.Second)
	plugin.Kill(t)
	plugin.Start(t)
	story.AwaitReplacement(t, cluster, sick, 2)
	t.Logf("what the API server showed:\n%s", strings.Join(append(seen.Health(), plugin.History()...), "\n"))
	expectOneIncident(t, seen, opened)
	story.ExpectEvictedOnce(t, controller, sick)
}
