// Package leader runs two replicas of the controller and takes the leader away in every way that we know.
package leader

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

const (
	gpu   = "example.com/gpu"
	lease = "device-health-controller"
	// What a loaded machine may need; how long something took is asked of the audit log or of the processes' own logs.
	patience = time.Minute
	// A holder's time, after which others may lead.
	term = 15 * time.Second
)

var cluster *realcluster.ControlPlane
var manifests dhc.Manifests

func TestMain(m *testing.M) {
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) (err error) {
		cluster = planes[0]
		if err := dhc.InstallOn(planes); err != nil {
			return err
		}
		manifests, err = dhc.ReadManifests(cluster)
		return err
	}, realcluster.Options{Name: "leader"})
}

// replica is one process under an account of its own.
type replica struct {
	*dhc.Controller
	account string
	started time.Time
}

func start(t *testing.T, policy, server string) replica {
	t.Helper()
	account, started := manifests.AccountWithout(t, cluster), time.Now()
	return replica{dhc.StartReady(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, account, server), Policy: policy, InCluster: true, Elect: true}), account, started}
}

func (r replica) leads(t *testing.T) bool { return r.Metric(t, "device_health_leader") == 1 }

func (r replica) awaitLeading(t *testing.T) {
	t.Helper()
	realcluster.Eventually(t, patience, "it leads", func() error {
		if !r.leads(t) {
			_, text := r.Readyz(t)
			return fmt.Errorf("it does not: %s", text)
		}
		return nil
	})
}

// awaitGivenUp waits until it has said, since a time, that it leads no longer, and says when that was. It may lead again by then.
func (r replica) awaitGivenUp(t *testing.T, since time.Time) (at time.Time) {
	t.Helper()
	realcluster.Eventually(t, patience, "it gives up", func() (err error) {
		at, err = r.said(t, "no longer leading", since)
		return err
	})
	return at
}

// said is when it first wrote such a line since a time: by the clock of this machine, which all of us share.
func (r replica) said(t *testing.T, message string, since time.Time) (time.Time, error) {
	t.Helper()
	for _, line := range r.Log(t) {
		if at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(line["ts"])); err == nil && line["msg"] == message && !at.Before(since) {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("it has not said %q since %s", message, since.Format(time.StampMilli))
}

// saysLeading is when it began to lead, since a time.
func (r replica) saysLeading(t *testing.T, since time.Time) time.Time {
	t.Helper()
	var at time.Time
	realcluster.Eventually(t, patience, "it says that it leads", func() (err error) {
		at, err = r.said(t, "leading", since)
		return err
	})
	return at
}

// writes of the replica since a time, but for the Lease and questions about rights.
func (r replica) writes(t *testing.T, since time.Time) (sent []realcluster.AuditEvent) {
	t.Helper()
	sent, err := cluster.Audit(since, func(e realcluster.AuditEvent) bool {
		return e.User.Username == dhc.User(r.account) && e.Writes() && e.ObjectRef.Resource != "leases" && e.ObjectRef.Resource != "selfsubjectaccessreviews"
	})
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

func (r replica) expectNoWrites(t *testing.T, since time.Time) {
	t.Helper()
	r.expectNoWritesBetween(t, since, time.Now())
}

func (r replica) expectNoWritesBetween(t *testing.T, since, until time.Time) {
	t.Helper()
	for _, e := range r.writes(t, since) {
		if e.Received.After(until) {
			continue
		}
		t.Errorf("%s wrote at %s: %s %s (%d)", r.account, e.Received, e.Verb, e.RequestURI, e.Response.Code)
	}
}

// pair is a leader and a standby. A test that has ended leaves a Lease that was given back, or one that has to run out.
func pair(t *testing.T, policy, server string) (leader, standby replica) {
	t.Helper()
	leader = start(t, policy, server)
	leader.awaitLeading(t)
	standby = start(t, policy, "")
	if standby.leads(t) || !leader.leads(t) {
		t.Fatal("the second one leads")
	}
	return leader, standby
}

func held(t *testing.T) *coordinationv1.Lease {
	t.Helper()
	found, err := cluster.Client.CoordinationV1().Leases(dhc.Namespace).Get(t.Context(), lease, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// quarrel is a node with four devices and two Pods, and a policy that acts at once.
type quarrel struct {
	node      *fakenode.Node
	namespace string
	policy    string
}

func newQuarrel(t *testing.T) quarrel {
	t.Helper()
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{gpu: {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}})
	workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 2, Resource: gpu}.Create(t, cluster)
	return quarrel{node, namespace, dhc.Policy{Namespace: namespace}.Text()}
}

// breakAndAwait breaks a held device and waits until somebody has evicted its holder.
func (q quarrel) breakAndAwait(t *testing.T, device string) {
	t.Helper()
	sick := story.Holder(t, workload.Pods(t, cluster, q.namespace, "infer"), device)
	q.node.Break(t, gpu, device)
	story.AwaitReplacement(t, cluster, sick, 2)
}

func TestOnlyTheLeaderWritesAndAReleaseIsTakenWithinASecond(t *testing.T) {
	q := newQuarrel(t)
	leader, standby := pair(t, q.policy, "")
	since := time.Now()
	q.breakAndAwait(t, "gpu-0")
	if len(leader.writes(t, since)) == 0 {
		t.Error("the leader wrote nothing")
	}
	standby.expectNoWrites(t, since)
	if code, text := standby.Readyz(t); code != http.StatusOK || !strings.Contains(text, "leads") {
		t.Errorf("the standby is not ready: %d %s", code, text)
	}
	before := held(t)
	if code, said := leader.Said(t); code != http.StatusOK || said.Role != "leader" || said.Leader != *before.Spec.HolderIdentity || said.Mode != "enforce" {
		t.Errorf("the leader says: %d %+v", code, said)
	}
	if code, said := standby.Said(t); code != http.StatusServiceUnavailable || said.Role != "standby" || said.Leader != *before.Spec.HolderIdentity ||
		said.ViewAges["Pod"] == nil || !strings.Contains(said.Message, said.Leader) {
		t.Errorf("the standby does not name the leader: %d %+v", code, said)
	}
	if *before.Spec.LeaseDurationSeconds != 15 || *before.Spec.HolderIdentity == "" || time.Since(before.Spec.RenewTime.Time) > term {
		t.Errorf("the Lease is not as it should be: %+v", before.Spec)
	}

	began := time.Now()
	if err := leader.End(); err != nil { // also if it took more than 5 s
		t.Error(err)
	}
	if err := leader.Says("lease released"); err != nil {
		t.Error(err)
	}
	standby.awaitLeading(t)
	// By the API server's clock: the first Lease write of the one after the last of the other.
	last := leaseWrites(t, leader, began)
	first := leaseWrites(t, standby, began)
	if len(last) == 0 || len(first) == 0 {
		t.Fatalf("no Lease writes: %d, %d", len(last), len(first))
	}
	gap := first[0].Received.Sub(last[len(last)-1].Received)
	t.Logf("the Lease was free for %s", gap) // some milliseconds on a quiet machine
	if gap < 0 || gap > term-5*time.Second {
		t.Errorf("the Lease was free for %s: that is no answer to its release", gap)
	}
	if after := held(t); *after.Spec.LeaseTransitions != *before.Spec.LeaseTransitions+1 {
		t.Errorf("transitions %d after %d", *after.Spec.LeaseTransitions, *before.Spec.LeaseTransitions)
	}
	q.breakAndAwait(t, "gpu-1")
}

func leaseWrites(t *testing.T, r replica, since time.Time) []realcluster.AuditEvent {
	t.Helper()
	sent, err := cluster.Audit(since, func(e realcluster.AuditEvent) bool {
		return e.User.Username == dhc.User(r.account) && e.Verb == "patch" && e.ObjectRef.Resource == "leases" && e.Response.Code < 300
	})
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

func TestALeaderThatWasStoppedFor20sWritesNothingWhenItWakes(t *testing.T) {
	q := newQuarrel(t)
	leader, standby := pair(t, q.policy, "")
	leader.Signal(t, syscall.SIGSTOP)
	stopped := time.Now()
	// It will find this in its socket when it wakes, as the first thing.
	sick := story.Holder(t, workload.Pods(t, cluster, q.namespace, "infer"), "gpu-0")
	q.node.Break(t, gpu, "gpu-0")
	standby.awaitLeading(t)
	story.AwaitReplacement(t, cluster, sick, 2)
	time.Sleep(time.Until(stopped.Add(20 * time.Second))) // the story itself
	q.node.Break(t, gpu, "gpu-1")
	woken := time.Now()
	leader.Signal(t, syscall.SIGCONT)
	leader.awaitGivenUp(t, woken)
	story.AwaitReplacement(t, cluster, sick, 2)
	time.Sleep(time.Until(woken.Add(3 * time.Second))) // for a write that must not come there is nothing to wait for
	leader.expectNoWrites(t, stopped)
	if !standby.leads(t) {
		t.Error("the other one no longer leads")
	}
}

func TestALeaderThatIsKilledIsReplacedWhenItsTimeIsOver(t *testing.T) {
	q := newQuarrel(t)
	leader, standby := pair(t, q.policy, "")
	since := leader.started
	leader.Kill()
	killed := time.Now()
	standby.awaitLeading(t)
	t.Logf("the other one leads %s after the kill", standby.saysLeading(t, killed).Sub(killed)) // 18 s at most on a quiet machine
	last, first := leaseWrites(t, leader, since), leaseWrites(t, standby, since)
	if len(last) == 0 || len(first) == 0 {
		t.Fatalf("no Lease writes: %d, %d", len(last), len(first))
	}
	if gap := first[0].Received.Sub(last[len(last)-1].Received); gap < term {
		t.Errorf("it did not wait for the other one's time: %s", gap)
	}
	q.breakAndAwait(t, "gpu-0")
}

func TestALeaderThatIsCutOffStopsAndStaysStoppedWhenItComesBack(t *testing.T) {
	q := newQuarrel(t)
	proxy, err := realcluster.NewProxy(cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	leader, standby := pair(t, q.policy, proxy.Server)
	proxy.Cut()
	cut := time.Now()
	gaveUp := leader.awaitGivenUp(t, cut)
	standby.awaitLeading(t)
	if began := standby.saysLeading(t, cut); began.Before(gaveUp) {
		t.Errorf("the standby led from %s on, and the leader gave up at %s", began, gaveUp)
	}
	q.breakAndAwait(t, "gpu-0")
	proxy.Mend()
	realcluster.Eventually(t, patience, "the old one stands by", func() error {
		_, text := leader.Readyz(t)
		if !strings.Contains(text, "leads") || strings.Contains(text, "cannot") {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	leader.expectNoWrites(t, cut)
	if leader.leads(t) || !standby.leads(t) {
		t.Error("the old one leads again")
	}
}

func TestALeaseThatIsDeletedStopsTheLeaderAndOneLeadsAgain(t *testing.T) {
	q := newQuarrel(t)
	leader, standby := pair(t, q.policy, "")
	deleting := time.Now()
	if err := cluster.Client.CoordinationV1().Leases(dhc.Namespace).Delete(t.Context(), lease, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	stopped := leader.awaitGivenUp(t, deleting)
	realcluster.Eventually(t, patience, "one of them leads", func() error {
		if leader.leads(t) == standby.leads(t) {
			return fmt.Errorf("leading: %t, %t", leader.leads(t), standby.leads(t))
		}
		return nil
	})
	// Whichever leads now, and since when.
	var again time.Time
	for _, r := range []replica{leader, standby} {
		if at, err := r.said(t, "leading", stopped); err == nil {
			again = at
		}
	}
	for _, r := range []replica{leader, standby} {
		r.expectNoWritesBetween(t, stopped, again)
	}
	q.breakAndAwait(t, "gpu-0")
}

func TestALeaseThatIsStolenStopsTheLeaderAndIsTakenBackWhenTheThiefsTimeIsOver(t *testing.T) {
	q := newQuarrel(t)
	leader := start(t, q.policy, "")
	leader.awaitLeading(t)
	// As kubectl does it, without a renewTime of its own.
	stealing := time.Now()
	patch := []byte(`{"spec":{"holderIdentity":"thief"}}`)
	if _, err := cluster.Client.CoordinationV1().Leases(dhc.Namespace).Patch(t.Context(), lease, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-patch"}); err != nil {
		t.Fatal(err)
	}
	gaveUp := leader.awaitGivenUp(t, stealing)
	leader.awaitLeading(t)
	again := leader.saysLeading(t, gaveUp)
	if again.Sub(stealing) < term {
		t.Errorf("it led again %s after the theft, in the thief's time", again.Sub(stealing))
	}
	leader.expectNoWritesBetween(t, gaveUp, again)
	q.breakAndAwait(t, "gpu-0")
}

func TestWithoutOneVerbOnTheLeaseItIsNotReadyAndNamesTheVerb(t *testing.T) {
	for _, verb := range []string{"get", "watch", "create", "patch"} {
		t.Run(verb, func(t *testing.T) {
			_ = cluster.Client.CoordinationV1().Leases(dhc.Namespace).Delete(t.Context(), lease, metav1.DeleteOptions{})
			account := manifests.AccountWithout(t, cluster, dhc.Verb{Group: "coordination.k8s.io", Resource: "leases", Verb: verb, Name: lease})
			controller := dhc.Start(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, account, ""), Policy: dhc.Policy{Namespace: "none"}.Text(), InCluster: true, Elect: true})
			realcluster.Eventually(t, patience, "/readyz names the verb", func() error {
				code, text := controller.Readyz(t)
				for _, line := range strings.Split(text, "\n") {
					if code != http.StatusOK && strings.HasPrefix(line, "[-]") && strings.Contains(line, "cannot "+verb+" resource") {
						return nil
					}
				}
				return fmt.Errorf("%d %s", code, text)
			})
			controller.AwaitSays(t, "forbidden: leases.coordination.k8s.io "+verb)
			r := replica{Controller: controller, account: account}
			r.expectNoWrites(t, time.Now().Add(-time.Minute))
		})
	}
}
