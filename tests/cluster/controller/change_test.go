package controller

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
)

func watchOf(resource string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/"+resource) && r.URL.Query().Get("watch") != ""
	}
}

func awaitNode(t *testing.T, node *fakenode.Node, allocatable int64) {
	t.Helper()
	realcluster.Eventually(t, 10*time.Second, fmt.Sprintf("allocatable of %s is %d", node.Name, allocatable), func() error {
		now, err := cluster.Client.CoreV1().Nodes().Get(t.Context(), node.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := now.Status.Allocatable[gpu]; got.Value() != allocatable {
			return fmt.Errorf("it is %s", &got)
		}
		return nil
	})
}

func TestAConfigMapEditedLiveTakesEffectAndABadEditKeepsTheLastGoodOne(t *testing.T) {
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	dhc.WriteConfigMap(t, cluster, dhc.Policy{Namespace: namespace, Mode: "observe"}.Text())
	controller := story.Start(t, cluster, dhc.Settings{})
	node.Break(t, gpu, "gpu-0")
	sick := story.Holder(t, pods, "gpu-0")
	controller.AwaitVerdict(t, sick.Name, "WouldEvict")

	dhc.WriteConfigMap(t, cluster, dhc.Policy{Namespace: namespace}.Text())
	pods = story.AwaitReplacement(t, cluster, sick, 2)
	story.ExpectEvictedOnce(t, controller, sick)

	dhc.WriteConfigMap(t, cluster, dhc.Policy{Namespace: namespace}.Text()+"  evictoins: {}\n")
	story.AwaitEvent(t, cluster, dhc.Namespace, dhc.ConfigMap, "ConfigRejected")
	if ok := controller.Metric(t, "device_health_policy_last_reload_success"); ok != 0 {
		t.Errorf("the metric calls the reload a success: %v", ok)
	}
	node.Break(t, gpu, "gpu-1")
	second := story.Holder(t, pods, "gpu-1")
	story.AwaitReplacement(t, cluster, second, 2)
	story.ExpectEvictedOnce(t, controller, second)

	dhc.WriteConfigMap(t, cluster, dhc.Policy{Namespace: namespace}.Text())
	realcluster.Eventually(t, 10*time.Second, "the mended configuration is read", func() error {
		if controller.Metric(t, "device_health_policy_last_reload_success") != 1 {
			return fmt.Errorf("not yet")
		}
		return nil
	})
}

func TestPausedStopsEvictionsAndUnpausedGoesOn(t *testing.T) {
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	dhc.WriteConfigMap(t, cluster, dhc.Policy{Namespace: namespace}.Text())
	controller := story.Start(t, cluster, dhc.Settings{})
	accepted := controller.Metric(t, `device_health_policy_reloads_total{result="accepted"}`)
	edited := time.Now()
	dhc.WriteConfigMap(t, cluster, dhc.Policy{Namespace: namespace, Paused: true}.Text())
	realcluster.Eventually(t, 10*time.Second, "the edit is read", func() error {
		if controller.Metric(t, `device_health_policy_reloads_total{result="accepted"}`) <= accepted {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	t.Logf("the edit took effect after %s", time.Since(edited))
	node.Break(t, gpu, "gpu-0")
	sick := story.Holder(t, pods, "gpu-0")
	controller.AwaitVerdict(t, sick.Name, "Paused")
	controller.Stays(t, sick, 2*time.Second)
	dhc.WriteConfigMap(t, cluster, dhc.Policy{Namespace: namespace}.Text())
	story.AwaitReplacement(t, cluster, sick, 2)
	story.ExpectEvictedOnce(t, controller, sick)
}

func TestAfterA410TheWorldIsListedAgainAndWhatHappenedMeanwhileIsSeen(t *testing.T) {
	cp := withoutWatchList
	node, namespace, pods := fleet(t, cp, fakenode.Spec{})
	proxy, err := realcluster.NewProxy(cp)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	controller := story.Start(t, cp, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cp, dhc.Account, proxy.Server), Policy: dhc.Policy{Namespace: namespace}.Text()})
	sick, neighbour := story.Holder(t, pods, "gpu-0"), story.Holder(t, pods, "gpu-1")
	proxy.Cut()
	// What it can only learn from the new list: a Pod that went, and a device that broke.
	if err := cp.Client.CoreV1().Pods(namespace).Delete(t.Context(), neighbour.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	story.AwaitReplacement(t, cp, neighbour, 2)
	node.Break(t, gpu, "gpu-0")
	if err := cp.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy.Mend()
	story.AwaitReplacement(t, cp, sick, 2)
	story.ExpectEvictedOnce(t, controller, sick)
	realcluster.Eventually(t, 15*time.Second, "it knows as many Pods as there are", func() error {
		all, err := cp.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		if known := controller.Metric(t, `device_health_objects{kind="Pod"}`); known != float64(len(all.Items)) {
			return fmt.Errorf("%v known, %d there", known, len(all.Items))
		}
		return nil
	})
	if code, text := controller.Readyz(t); code != http.StatusOK {
		t.Errorf("/readyz: %d %s", code, text)
	}
	gone := controller.Requests(t, func(e realcluster.AuditEvent) bool { return e.Verb == "list" && e.ObjectRef.Resource == "pods" })
	if len(gone) < 2 {
		t.Errorf("Pods were listed %d time(s): there was no 410 to recover from", len(gone))
	}
}
