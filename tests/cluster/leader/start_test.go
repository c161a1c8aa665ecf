package leader

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
)

// firstWatch waits for the first list or watch of an account since a time, and says when the API server received it.
func firstWatch(t *testing.T, account string, since time.Time) (at time.Time) {
	t.Helper()
	realcluster.Eventually(t, patience, "a list or watch is received", func() error {
		sent, err := cluster.Audit(since, func(e realcluster.AuditEvent) bool {
			return e.User.Username == dhc.User(account) && (e.Verb == "list" || e.Verb == "watch")
		})
		if err == nil && len(sent) == 0 {
			err = fmt.Errorf("none is in the audit log")
		}
		for _, e := range sent {
			if at.IsZero() || e.Received.Before(at) {
				at = e.Received
			}
		}
		return err
	})
	return at
}

// A list must not wait for what only people need to know.
func TestTheFirstListWaitsForNoOtherAnswer(t *testing.T) {
	proxy, err := realcluster.NewProxy(cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	proxy.Hold(func(request *http.Request) bool {
		return strings.Contains(request.URL.Path, "selfsubjectaccessreviews") || strings.Contains(request.URL.Path, "/leases")
	})
	account := manifests.AccountWithout(t, cluster)
	began := time.Now()
	dhc.Launch(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, account, proxy.Server), Policy: dhc.Policy{Namespace: "none"}.Text(), InCluster: true, Elect: true})
	firstWatch(t, account, began)
}

// How long it takes is printed, and written in docs/performance.md; a test that shares its machine cannot hold it to 100 ms.
func TestHowLongAStartTakesUntilTheFirstList(t *testing.T) {
	account := manifests.AccountWithout(t, cluster)
	kubeconfig := dhc.Kubeconfig(t, cluster, account, "")
	var took []time.Duration
	for range 5 {
		began := time.Now()
		controller := dhc.Launch(t, dhc.Settings{Kubeconfig: kubeconfig, Policy: dhc.Policy{Namespace: "none"}.Text()})
		took = append(took, firstWatch(t, account, began).Sub(began))
		controller.AwaitServing(t)
		if err := controller.End(); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(took)
	t.Logf("from the start of the process to its first list or watch at the API server: %v", took)
}
