package taint

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/story"
)

// startForOperator runs the controller by the ConfigMap, which an operator may annotate, and returns the operator's kubeconfig.
func (r rack) startForOperator(t *testing.T) (controller story.Run, operator string) {
	t.Helper()
	dhc.InstallRolesForPeople(t, cluster)
	dhc.WriteConfigMap(t, cluster, dhc.Policy{Namespace: r.namespace, Taint: "{device: NoSchedule}"}.Text())
	settings := r.settings(t, dhc.Policy{})
	settings.Policy = "" // the ConfigMap
	controller = story.Start(t, cluster, settings)
	_, operator = dhc.Person(t, cluster, dhc.OperatorRole, "")
	return controller, operator
}

// removeAnnotations is for a defer: at a Cleanup the test's context has ended.
func (r rack) removeAnnotations(t *testing.T) {
	t.Helper()
	dhc.WriteConfigMap(t, cluster, dhc.Policy{Namespace: r.namespace}.Text())
}

// An operator pauses the node by kubectl, with the rights of his role alone; what it holds says until when, who and why, and goes by itself at the end. One that nobody can
// read is refused, and the last good one goes on.
func TestAPauseOfANodeHoldsItUpToItsEndAndABadOneIsRefused(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller, operator := r.startForOperator(t)
	defer r.removeAnnotations(t)
	const length = 30 * time.Second
	began := time.Now()
	code, out, problem := dhc.Command(t, "pause", "--node", r.node.Name, "--for", fmt.Sprintf("%ds", int(length.Seconds())), "--reason", "new riser card",
		"--kubeconfig", operator, "--controller-namespace", dhc.Namespace)
	if code != 0 || !strings.Contains(out, "device-health.io/pause."+r.node.Name) {
		t.Fatalf("pause ends with %d: %s%s", code, out, problem)
	}
	r.breaks(device)
	held := controller.AwaitVerdict(t, sick.Name, "Paused")
	for _, words := range []string{"for node " + r.node.Name, "by system:serviceaccount:" + dhc.Namespace, ": new riser card"} {
		if !strings.Contains(held.Message, words) {
			t.Errorf("it does not say %q: %s", words, held.Message)
		}
	}
	bad := []byte(`{"metadata":{"annotations":{"device-health.io/pause.bad":"{\"nodes\":[\"x\"]}"}}}`)
	_, err := cluster.Client.CoreV1().ConfigMaps(dhc.Namespace).Patch(t.Context(), dhc.ConfigMap, types.MergePatchType, bad, metav1.PatchOptions{})
	must(t, err)
	event := story.AwaitEvent(t, cluster, dhc.Namespace, dhc.ConfigMap, "ConfigRejected")
	if !strings.Contains(event.Note, "annotation device-health.io/pause.bad:1:1: pause has no until") {
		t.Errorf("the Event says %s", event.Note)
	}
	controller.AwaitVerdict(t, sick.Name, "Paused")
	story.AwaitGone(t, cluster, sick)
	// The end is counted from the server's Date, which has whole seconds.
	if passed := time.Since(began); passed < length-time.Second {
		t.Errorf("it went after %s", passed)
	}
	story.ExpectEvictedOnce(t, controller, sick)
}

// A policy that enforces on another pool says what it would do here, and does it once the node's label brings it in.
func TestEnforceOnObservesElsewhereAndALabelBringsTheNodeIn(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	settings := r.settings(t, dhc.Policy{})
	settings.Policy = strings.Replace(settings.Policy, "  mode: enforce", "  mode: enforce\n  enforceOn: {nodeSelector: {matchLabels: {rollout: first}}}", 1)
	controller := story.Start(t, cluster, settings)
	r.breaks(device)
	would := controller.AwaitVerdict(t, sick.Name, "WouldEvict")
	if !strings.Contains(would.Message, "observes here by enforceOn: its nodeSelector does not select the node") {
		t.Errorf("it says %s", would.Message)
	}
	r.staysWithoutRule(t)
	labels := []byte(`{"metadata":{"labels":{"rollout":"first"}}}`)
	_, err := cluster.Client.CoreV1().Nodes().Patch(t.Context(), r.node.Name, types.MergePatchType, labels, metav1.PatchOptions{})
	must(t, err)
	r.awaitRule(t, device, "NoSchedule")
	story.AwaitGone(t, cluster, sick)
	story.ExpectEvictedOnce(t, controller, sick)
}

// What an operator has paused goes on as soon as the operator says so, and not when another part is named.
func TestAnOperatorsResumeOfANodeEndsItsPause(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller, operator := r.startForOperator(t)
	defer r.removeAnnotations(t)
	as := []string{"--kubeconfig", operator, "--controller-namespace", dhc.Namespace}
	if code, out, problem := dhc.Command(t, append([]string{"pause", "--node", r.node.Name, "--for", "1h", "--reason", "new riser card"}, as...)...); code != 0 {
		t.Fatalf("pause ends with %d: %s%s", code, out, problem)
	}
	r.breaks(device)
	controller.AwaitVerdict(t, sick.Name, "Paused")
	if code, out, problem := dhc.Command(t, append([]string{"resume", "--node", "another"}, as...)...); code != 1 || !strings.Contains(problem, "that part is not paused") || !strings.Contains(problem, "device-health.io/pause."+r.node.Name) {
		t.Errorf("resume of another node ends with %d: %s%s", code, out, problem)
	}
	if code, out, problem := dhc.Command(t, append([]string{"resume", "--node", r.node.Name}, as...)...); code != 0 || !strings.Contains(out, "device-health.io/pause."+r.node.Name) || !strings.Contains(out, " removed\n") {
		t.Fatalf("resume ends with %d: %s%s", code, out, problem)
	}
	story.AwaitGone(t, cluster, sick)
	story.ExpectEvictedOnce(t, controller, sick)
	left, err := cluster.Client.CoreV1().ConfigMaps(dhc.Namespace).Get(t.Context(), dhc.ConfigMap, metav1.GetOptions{})
	must(t, err)
	if len(left.Annotations) != 0 {
		t.Errorf("the ConfigMap keeps %v", left.Annotations)
	}
}
