package leader

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// incident is a Job of two Pods on DRA devices, and a budget that holds every eviction until it is lifted.
type incident struct {
	node              *fakenode.Node
	namespace, driver string
	pods              []corev1.Pod
	policy            string
}

func newIncident(t *testing.T) incident {
	t.Helper()
	i := incident{namespace: cluster.Namespace(t), driver: realcluster.Unique("gpu") + ".example.com"}
	i.node = fakenode.Start(t, cluster, fakenode.Spec{DRA: map[string][]string{i.driver: {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}, Termination: time.Second})
	template := workload.DeviceClass(t, cluster, i.namespace, i.driver)
	i.pods = workload.Job{Namespace: i.namespace, Name: "train", Parallelism: 2, ClaimTemplate: template}.Create(t, cluster)
	workload.Budget(t, cluster, i.namespace, "train", 2)
	i.policy = dhc.Policy{Namespace: i.namespace, Taint: "{device: NoSchedule}", JobRetry: "{settle: 2s}"}.Text()
	return i
}

// rules are the names of those that select devices of this incident's driver.
func (i incident) rules(t *testing.T) (names []string) {
	t.Helper()
	list, err := cluster.Client.ResourceV1().DeviceTaintRules().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range list.Items {
		if s := rule.Spec.DeviceSelector; s != nil && s.Driver != nil && *s.Driver == i.driver {
			names = append(names, rule.Name)
		}
	}
	return names
}

// credits are the Job's limit and the retries that its record says were given back.
func (i incident) credits(t *testing.T) (limit int32, given int) {
	t.Helper()
	job, err := cluster.Client.BatchV1().Jobs(i.namespace).Get(t.Context(), "train", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range job.Status.Conditions {
		t.Errorf("the Job is %s: %s", condition.Type, condition.Message)
	}
	var record struct {
		Credits []json.RawMessage `json:"credits"`
	}
	if text := job.Annotations["device-health.io/retry-credits"]; text != "" {
		if err := json.Unmarshal([]byte(text), &record); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	return *job.Spec.BackoffLimit, len(record.Credits)
}

// The leader goes when the device is tainted and the retry given, and nothing is evicted yet: the other one has only the cluster to know it from.
func TestALeaderThatGoesBetweenCreditAndEvictionLeavesOneRuleOneCreditAndOneEviction(t *testing.T) {
	for name, end := range map[string]func(*testing.T, replica){
		"killed": func(_ *testing.T, leader replica) { leader.Kill() },
		"asked to end": func(t *testing.T, leader replica) {
			leader.Signal(t, syscall.SIGTERM)
			if code, ended := leader.Ended(patience); !ended || code != 0 {
				t.Errorf("ended %t with code %d", ended, code)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := newIncident(t)
			leader, standby := pair(t, i.policy, "")
			sick, neighbour := i.pods[0], i.pods[1]
			id, _ := workload.Device(sick)
			began := leader.started
			i.node.SetHealth(i.driver, id[strings.LastIndexByte(id, '/')+1:], "Unhealthy", "Xid 79")
			realcluster.Eventually(t, patience, "the device is tainted and the retry given back", func() error {
				if limit, given := i.credits(t); len(i.rules(t)) != 1 || limit != 1 || given != 1 {
					return fmt.Errorf("rules %v, limit %d, %d credits", i.rules(t), limit, given)
				}
				return nil
			})
			end(t, leader)
			standby.awaitLeading(t)
			if err := cluster.Client.PolicyV1().PodDisruptionBudgets(i.namespace).Delete(t.Context(), "train", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			story.AwaitReplacement(t, cluster, sick, 2)
			story.AwaitEvent(t, cluster, i.namespace, sick.Name, "Evicted")

			if rules := i.rules(t); len(rules) != 1 {
				t.Errorf("there are rules %v", rules)
			}
			if limit, given := i.credits(t); limit != 1 || given != 1 {
				t.Errorf("the limit is %d after %d credits", limit, given)
			}
			var made, raised, evicted []string
			for _, who := range []replica{leader, standby} {
				for _, e := range who.writes(t, began) {
					line := fmt.Sprintf("%s: %s %s %d", who.account, e.Verb, e.RequestURI, e.Response.Code)
					switch {
					case e.ObjectRef.Resource == "devicetaintrules" && e.Response.Code == http.StatusCreated:
						made = append(made, line)
					case e.ObjectRef.Resource == "jobs" && e.Response.Code == http.StatusOK && strings.Contains(string(e.Request), `"backoffLimit"`):
						raised = append(raised, line)
					case e.ObjectRef.Subresource == "eviction" && e.Response.Code == http.StatusCreated:
						evicted = append(evicted, line)
						if e.ObjectRef.Name != sick.Name || who.account != standby.account {
							t.Errorf("an eviction nobody needs: %s", line)
						}
					}
				}
			}
			if len(made) != 1 || len(raised) != 1 || len(evicted) != 1 {
				t.Errorf("by the audit log: rules made %q, limits raised %q, evictions %q", made, raised, evicted)
			}
			if now, err := cluster.Client.CoreV1().Pods(i.namespace).Get(t.Context(), neighbour.Name, metav1.GetOptions{}); err != nil || now.UID != neighbour.UID || now.DeletionTimestamp != nil {
				t.Errorf("the neighbour was touched: %v", err)
			}
		})
	}
}

// inFlight is a pair whose leader speaks through a proxy, and has sent an eviction that the server has carried out and not answered.
func inFlight(t *testing.T) (proxy *realcluster.Proxy, leader, standby replica, sick corev1.Pod) {
	t.Helper()
	q := newQuarrel(t)
	proxy, err := realcluster.NewProxy(cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	leader, standby = pair(t, q.policy, proxy.Server)
	proxy.Hold(func(request *http.Request) bool { return strings.HasSuffix(request.URL.Path, "/eviction") })
	sick = story.Holder(t, workload.Pods(t, cluster, q.namespace, "infer"), "gpu-0")
	q.node.Break(t, gpu, "gpu-0")
	realcluster.Eventually(t, patience, "the eviction is carried out", func() error {
		if len(evictions(t, leader)) == 0 {
			return fmt.Errorf("the audit log has none")
		}
		return nil
	})
	return proxy, leader, standby, sick
}

func evictions(t *testing.T, r replica) (granted []realcluster.AuditEvent) {
	t.Helper()
	for _, e := range r.writes(t, r.started) {
		if e.ObjectRef.Subresource == "eviction" && e.Response.Code == http.StatusCreated {
			granted = append(granted, e)
		}
	}
	return granted
}

func TestALeaderThatIsAskedToEndWaitsForTheAnswerToItsEvictionThenGivesTheLeaseBack(t *testing.T) {
	proxy, leader, standby, sick := inFlight(t)
	leader.Signal(t, syscall.SIGTERM)
	if code, ended := leader.Ended(100 * time.Millisecond); ended { // for what must not happen there is nothing to wait for
		t.Errorf("it did not wait for the answer, and ended with code %d", code)
	}
	answered := time.Now()
	proxy.Hold(nil)
	// Of the promised 5 s: what is not over then is ended with another code.
	if code, ended := leader.Ended(patience); !ended || code != 0 {
		t.Errorf("ended %t with code %d", ended, code)
	}
	for _, said := range [][]string{{`"EvictPod"`, `"outcome":"ok"`, sick.Name}, {`"lease released"`}} {
		if err := leader.Says(said...); err != nil {
			t.Error(err)
		}
	}
	if at, err := leader.said(t, "lease released", leader.started); err != nil || at.Before(answered) {
		t.Errorf("the Lease was given back at %s, and the eviction answered from %s on (%v)", at, answered, err)
	}
	expectTakenOverAndEvictedOnce(t, leader, standby, sick)
}

func TestALeaderThatIsAskedToEndDoesNotWaitForEverForAnAnswer(t *testing.T) {
	_, leader, standby, sick := inFlight(t)
	leader.Signal(t, syscall.SIGTERM)
	if code, ended := leader.Ended(patience); !ended || code != 0 {
		t.Errorf("ended %t with code %d", ended, code)
	}
	// The server may still be at work on it: nobody else leads before our time is over.
	if err := leader.Says(`"lease not released: a request is still under way"`); err != nil {
		t.Error(err)
	}
	if err := leader.Says(`"lease released"`); err == nil {
		t.Error("the Lease was given back while an eviction was under way")
	}
	expectTakenOverAndEvictedOnce(t, leader, standby, sick)
}

func expectTakenOverAndEvictedOnce(t *testing.T, leader, standby replica, sick corev1.Pod) {
	t.Helper()
	standby.awaitLeading(t)
	story.AwaitReplacement(t, cluster, sick, 2)
	if first, second := evictions(t, leader), evictions(t, standby); len(first) != 1 || len(second) != 0 {
		t.Errorf("%d evictions of the first leader and %d of the second were granted", len(first), len(second))
	}
}
