package controller

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
)

const webhookKey = "the key of this story, long enough"

// told is one event as its receiver got it.
type told struct{ SpecVersion, ID, Source, Type, Subject, Time string }

// receiver takes CloudEvents that are signed with webhookKey. It refuses the first as one that is overloaded does, and may stop answering.
type receiver struct {
	*httptest.Server
	mutex  sync.Mutex
	tries  int
	silent bool
	events []told
	wrong  []string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	at := request.Header.Get("X-Device-Health-Timestamp")
	sum := hmac.New(sha256.New, []byte(webhookKey))
	sum.Write([]byte(at + "." + string(body)))
	r.mutex.Lock()
	r.tries++
	first, silent := r.tries == 1, r.silent
	r.mutex.Unlock()
	if silent {
		<-request.Context().Done()
		return
	}
	if first {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	var event told
	seconds, noNumber := strconv.ParseInt(at, 10, 64)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err != nil || noNumber != nil || time.Since(time.Unix(seconds, 0)).Abs() > time.Minute || json.Unmarshal(body, &event) != nil ||
		event.SpecVersion != "1.0" || event.ID == "" || event.Source == "" || event.Time == "" || request.Method != http.MethodPost ||
		request.Header.Get("Content-Type") != "application/cloudevents+json; charset=utf-8" ||
		request.Header.Get("X-Device-Health-Signature") != "sha256="+hex.EncodeToString(sum.Sum(nil)) {
		r.wrong = append(r.wrong, fmt.Sprint(request.Header, string(body)))
		w.WriteHeader(http.StatusForbidden)
		return
	}
	r.events = append(r.events, event)
}

// ids are those of the events of this type, in the order in which they came.
func (r *receiver) ids(kind, subject string) (found []string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, event := range r.events {
		if event.Type == "io.device-health."+kind && event.Subject == subject {
			found = append(found, event.ID)
		}
	}
	return found
}

func (r *receiver) await(t *testing.T, times int, kind, subject string) []string {
	t.Helper()
	realcluster.Eventually(t, 60*time.Second, "the receiver is told of "+kind, func() error {
		if n := len(r.ids(kind, subject)); n != times {
			return fmt.Errorf("%d times, not %d: %+v", n, times, r.events)
		}
		return nil
	})
	return r.ids(kind, subject)
}

func (r *receiver) noneWrong(t *testing.T) {
	t.Helper()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.wrong) > 0 {
		t.Errorf("not signed, or no CloudEvents: %q", r.wrong)
	}
}

func (r *receiver) beSilent() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.silent = true
}

func webhookTo(url, secret string) string {
	return fmt.Sprintf("{url: %q, secretFile: %q, source: /story}", url+"/hidden-path", secret)
}

func secretFile(t *testing.T, key string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(file, []byte(key+"\n"), 0o600))
	return file
}

func TestAReceiverElsewhereIsToldOnceEachAndAgainWithTheSameIDsByTheNextLeader(t *testing.T) {
	dhc.Apply(t, cluster, dhc.HandOver)
	to := newReceiver(t)
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	sick := story.Holder(t, pods, "gpu-0")
	settings := dhc.Settings{InCluster: true, Policy: dhc.Policy{Namespace: namespace, HandOver: "{incidents: 1, nodeCondition: {type: " + needsRepair + "}}",
		Webhook: webhookTo(to.URL, secretFile(t, webhookKey))}.Text()}
	controller := story.Start(t, cluster, settings)
	node.Break(t, gpu, "gpu-0")
	device, pod := node.Name+"/"+gpu+"/gpu-0", "Pod/"+namespace+"/"+sick.Name
	opened := to.await(t, 1, "incident.opened", device)
	to.await(t, 1, "pod.evicted", pod)
	handed := to.await(t, 1, "node.handed-over", "Node/"+node.Name)
	if n := controller.Metric(t, `device_health_webhook_events_total{outcome="delivered"}`); n != 3 {
		t.Errorf("the metric says %v", n)
	}
	if controller.Says("hidden-path") == nil || controller.Says(webhookKey) == nil {
		t.Error("the log names the path or the key")
	}
	controller.Kill()
	next := story.Start(t, cluster, settings)
	if again := to.await(t, 2, "incident.opened", device); again[1] != opened[0] {
		t.Errorf("the same incident has the ids %q", again)
	}
	if again := to.await(t, 2, "node.handed-over", "Node/"+node.Name); again[1] != handed[0] {
		t.Errorf("the same hand-over has the ids %q", again)
	}
	story.PatchNode(t, cluster, node.Name, fmt.Sprintf(`{"metadata":{"annotations":{"device-health.io/acknowledge":%q}}}`, time.Now().UTC().Format(time.RFC3339)))
	story.AwaitNodeCondition(t, cluster, node.Name, needsRepair, corev1.ConditionFalse, "DeviceHealthRecovered")
	to.await(t, 1, "node.taken-back", "Node/"+node.Name)
	to.noneWrong(t)
	next.Kill()
}

func TestAReceiverThatNeverAnswersDelaysNeitherEvictionsNorTheEnd(t *testing.T) {
	to := newReceiver(t)
	to.beSilent()
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	sick := story.Holder(t, pods, "gpu-0")
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, Webhook: webhookTo(to.URL, secretFile(t, webhookKey))}.Text()})
	node.Break(t, gpu, "gpu-0")
	realcluster.Eventually(t, 30*time.Second, "the pod is evicted", func() error {
		if controller.EvictedIn(t, namespace) != 1 {
			return fmt.Errorf("%s is not", sick.Name)
		}
		return nil
	})
	realcluster.Eventually(t, 10*time.Second, "the receiver is asked", func() error {
		to.mutex.Lock()
		defer to.mutex.Unlock()
		if to.tries == 0 {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	begun := time.Now()
	controller.Signal(t, syscall.SIGTERM)
	if code, ended := controller.Ended(10 * time.Second); !ended || code != 0 {
		t.Fatalf("it ended: %t, with code %d", ended, code)
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("its end took %s", took)
	} else {
		t.Logf("its end took %s", took)
	}
}

func TestAKeyThatIsMissingIsSaidWithPlaceAndRemedyAndUsedOnceItIsThere(t *testing.T) {
	to := newReceiver(t)
	node, namespace, _ := fleet(t, cluster, fakenode.Spec{})
	secret := filepath.Join(t.TempDir(), "secret")
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, NoEvict: true, Webhook: webhookTo(to.URL, secret)}.Text()})
	verdict := controller.AwaitVerdict(t, "configuration", "WebhookFails")
	for _, wanted := range []string{"spec.webhook.secretFile", secret, "mount a Secret there"} {
		if !strings.Contains(verdict.Message, wanted) {
			t.Errorf("it does not say %q: %s", wanted, verdict.Message)
		}
	}
	node.Break(t, gpu, "gpu-0")
	must(t, os.WriteFile(secret, []byte(webhookKey), 0o600))
	to.await(t, 1, "incident.opened", node.Name+"/"+gpu+"/gpu-0")
	to.noneWrong(t)
	realcluster.Eventually(t, 20*time.Second, "the verdict is over", func() error {
		if slices.ContainsFunc(controller.Verdicts(t), func(v dhc.Verdict) bool { return v.Reason == "WebhookFails" }) {
			return fmt.Errorf("it stands")
		}
		return nil
	})
}
