package view

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// One stream of Pods says nothing more, and nobody ends it. Long before its silence is noticed, the read before an eviction finds that
// the Pod is gone: when the watch has not said so half a minute later, the Pods are listed afresh.
func TestAPodWhoseEndTheWatchNeverToldIsFoundByTheReadBeforeItsEviction(t *testing.T) {
	t.Parallel()
	namespace, gpu := cluster.Namespace(t), "example.com/"+realcluster.Unique("gpu")
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{gpu: {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}})
	sick := story.Holder(t, workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 2, Resource: gpu}.Create(t, cluster), "gpu-0")
	proxy, err := realcluster.NewProxy(cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	controller := story.Start(t, cluster, dhc.Settings{
		Kubeconfig: dhc.Kubeconfig(t, cluster, dhc.Account, proxy.Server), Policy: dhc.Policy{Namespace: namespace, After: "10s"}.Text()})
	node.Break(t, gpu, "gpu-0")
	controller.AwaitVerdict(t, sick.Name, "WaitingForWindow")

	var first atomic.Pointer[http.Request]
	proxy.Hold(func(request *http.Request) bool {
		if request.URL.Path != "/api/v1/pods" || request.URL.Query().Get("watch") == "" {
			return false
		}
		first.CompareAndSwap(nil, request) // the stream that is open; the one after it is not held
		return first.Load() == request
	})
	held := time.Now()
	if err := cluster.Client.CoreV1().Pods(namespace).Delete(t.Context(), sick.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	story.AwaitGone(t, cluster, sick)

	controller.AwaitSays(t, "the data went back", `"kind":"Pod"`, "a read showed that pod "+namespace+"/"+sick.Name+" is gone")
	t.Logf("said %s after the stream fell silent", time.Since(held).Round(time.Second))
	realcluster.Eventually(t, patience, "what is gone leaves memory", func() error {
		if got, there := controller.Metric(t, `device_health_objects{kind="Pod"}`), len(list(t, cluster).Items); got != float64(there) {
			return fmt.Errorf("%v Pods known, %d there", got, there)
		}
		return nil
	})
	realcluster.Eventually(t, patience, "it is ready and says what happened", func() error {
		code, text := controller.Readyz(t)
		if code != http.StatusOK || !strings.Contains(text, "a read showed that pod") {
			return fmt.Errorf("%d %s", code, text)
		}
		return nil
	})
	if evictions := controller.EvictedIn(t, namespace); evictions != 0 {
		t.Errorf("%d evictions of a Pod that was gone", evictions)
	}
}
