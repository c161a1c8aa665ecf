package rbac

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/workload"
)

// answers are the codes that an account's writes got since a time, by "VERB RESOURCE".
func answers(t *testing.T, account string, since time.Time) map[string][]int {
	t.Helper()
	codes := map[string][]int{}
	events, err := cluster.Audit(since, func(e realcluster.AuditEvent) bool { return e.User.Username == dhc.User(account) && e.Writes() })
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		what := e.Verb + " " + strings.Trim(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
		codes[what] = append(codes[what], e.Response.Code)
	}
	return codes
}

func awaitAnswer(t *testing.T, account string, since time.Time, what string, code int) {
	t.Helper()
	realcluster.Eventually(t, 30*time.Second, fmt.Sprintf("%s is answered with %d", what, code), func() error {
		if sent := answers(t, account, since); !slices.Contains(sent[what], code) {
			return fmt.Errorf("there are %v", sent)
		}
		return nil
	})
}

// awaitCounted waits until the metrics have the sample: an answer is counted a moment after the server has written it down.
func awaitCounted(t *testing.T, controller *dhc.Controller, sample string) {
	t.Helper()
	realcluster.Eventually(t, 0, sample+" is counted", func() error {
		if controller.Metric(t, sample) < 1 {
			return fmt.Errorf("it is not")
		}
		return nil
	})
}

// withoutState removes the ConfigMaps of state and status: only then is `create` needed.
func withoutState(t *testing.T) {
	t.Helper()
	for _, name := range []string{dhc.State, dhc.Status} {
		err := cluster.Client.CoreV1().ConfigMaps(dhc.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

// The verbs of the taints and of the state: without one its feature stops, a verdict, a line of the log and a metric say so, and the others go on.
func TestWithoutOneVerbOfTaintsOrStateItsFeatureStopsAndTheOthersGoOn(t *testing.T) {
	rule := dhc.Verb{Group: "resource.k8s.io", Resource: "devicetaintrules"}
	state, status := dhc.Verb{Resource: "configmaps", Name: dhc.State}, dhc.Verb{Resource: "configmaps", Name: dhc.Status}
	with := func(v dhc.Verb, verb string) dhc.Verb { v.Verb = verb; return v }
	for _, test := range []struct {
		verb     dhc.Verb
		refused  string // as the audit log names it
		action   string // as the metric names it
		subject  string // of the verdict; empty: the node
		reason   string
		neededBy string
		held     string // the verdict of the Pod that stays; empty: it is evicted
	}{
		{with(rule, "create"), "patch devicetaintrules", "ApplyRule", "", "Refused", "taint", "WaitingForTaint"},
		{with(rule, "patch"), "patch devicetaintrules", "ApplyRule", "", "Refused", "taint", "WaitingForTaint"},
		{with(rule, "delete"), "delete devicetaintrules", "DeleteRule", "", "Refused", "taint", ""},
		{with(state, "create"), "patch configmaps", "WriteState", dhc.State, "StateNotSaved", "state", "WaitingForCharge"},
		{with(state, "patch"), "patch configmaps", "WriteState", dhc.State, "StateNotSaved", "state", "WaitingForCharge"},
		{with(status, "create"), "patch configmaps", "WriteStatus", dhc.Status, "StatusNotWritten", "status", ""},
		{with(status, "patch"), "patch configmaps", "WriteStatus", dhc.Status, "StatusNotWritten", "status", ""},
	} {
		t.Run(test.verb.String(), func(t *testing.T) {
			withoutState(t)
			namespace := cluster.Namespace(t)
			driver := realcluster.Unique("gpu") + ".example.com"
			node := fakenode.Start(t, cluster, fakenode.Spec{DRA: map[string][]string{driver: {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}})
			template := workload.DeviceClass(t, cluster, namespace, driver)
			sick := workload.Deployment{Namespace: namespace, Name: "train", Replicas: 1, ClaimTemplate: template}.Create(t, cluster)[0]
			account, since := manifests.AccountWithout(t, cluster, test.verb), time.Now()
			policy := dhc.Policy{Namespace: namespace, Taint: "{device: NoSchedule}", Recover: "{hold: 1s}"}.Text()
			controller := dhc.StartReady(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, account, ""), Policy: policy, InCluster: true})
			controller.AwaitSays(t, "forbidden: "+test.verb.Resource, " "+test.verb.Verb+" (needed by: "+test.neededBy)
			device, _ := workload.Device(sick)
			node.SetHealth(driver, device[strings.LastIndexByte(device, '/')+1:], "Unhealthy", "Xid 79")
			awaitAnswer(t, account, since, test.refused, http.StatusForbidden)
			subject := test.subject
			if subject == "" {
				subject = node.Name
			}
			controller.AwaitVerdict(t, subject, test.reason)
			awaitCounted(t, controller, fmt.Sprintf(`device_health_actions_total{action=%q,outcome="Forbidden"}`, test.action))
			awaitAnswer(t, account, since, "patch pods/status", http.StatusOK)
			awaitAnswer(t, account, since, "create events", http.StatusCreated)
			if test.held == "" {
				awaitReplaced(t, sick)
			} else {
				controller.AwaitVerdict(t, sick.Name, test.held)
			}
			if sent := answers(t, account, since)["create pods/eviction"]; (len(sent) > 0) != (test.held == "") {
				t.Errorf("evictions were answered with %v", sent)
			}
			if test.neededBy != "state" {
				awaitAnswer(t, account, since, "patch configmaps", http.StatusCreated)
			}
			if code, text := controller.Readyz(t); code != http.StatusOK {
				t.Errorf("a writing verb is no matter of readiness: %d %s", code, text)
			}
		})
	}
}

func TestWithoutPatchOfNodesNoNodeIsTaintedAndTheVerdictSaysSo(t *testing.T) {
	withoutState(t)
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{gpu: {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}})
	sick := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1, Resource: gpu}.Create(t, cluster)[0]
	account, since := manifests.AccountWithout(t, cluster, dhc.Verb{Resource: "nodes", Verb: "patch"}), time.Now()
	policy := dhc.Policy{Namespace: namespace, Taint: "{node: NoSchedule, nodeAtLeast: {devices: 1, percent: 1}}"}.Text()
	controller := dhc.StartReady(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, account, ""), Policy: policy, InCluster: true})
	controller.AwaitSays(t, "forbidden: nodes patch (needed by: taint)")
	node.Break(t, gpu, "gpu-0")
	awaitAnswer(t, account, since, "patch nodes", http.StatusForbidden)
	controller.AwaitVerdict(t, node.Name, "Refused")
	awaitCounted(t, controller, `device_health_actions_total{action="PatchNodeTaint",outcome="Forbidden"}`)
	controller.AwaitVerdict(t, sick.Name, "WaitingForTaint")
	awaitAnswer(t, account, since, "patch pods/status", http.StatusOK)
	awaitAnswer(t, account, since, "patch configmaps", http.StatusCreated)
	now, err := cluster.Client.CoreV1().Nodes().Get(t.Context(), node.Name, metav1.GetOptions{})
	if err != nil || len(now.Spec.Taints) > 0 {
		t.Errorf("the node has taints %v, %v", now.Spec.Taints, err)
	}
	if code, text := controller.Readyz(t); code != http.StatusOK {
		t.Errorf("a writing verb is no matter of readiness: %d %s", code, text)
	}
}

func awaitReplaced(t *testing.T, sick corev1.Pod) {
	t.Helper()
	realcluster.Eventually(t, 15*time.Second, "the Pod is replaced", func() error {
		for _, pod := range workload.Pods(t, cluster, sick.Namespace, sick.Labels["app"]) {
			if pod.UID != sick.UID && pod.Status.Phase == corev1.PodRunning {
				return nil
			}
		}
		return fmt.Errorf("not yet")
	})
}
