// Package taint tells the stories of taints, recovery and the stored state on a real control plane: a device is tainted before its Pod is evicted, the
// replacement gets another one, and the taint goes when, and only when, there is reason.
package taint

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

const (
	key         = "device-health.io/unhealthy"
	acknowledge = "device-health.io/acknowledge"
	incidents   = "device-health.io/incidents"
)

// The second serves no DeviceTaintRules, as clusters before 1.37; the third only v1beta2. Their schedulers know of no rules.
var cluster, withoutRules, betaOnly *realcluster.ControlPlane

// Of any release: 1.36 has no v1 of them.
const noRulesServed = "resource.k8s.io/v1/devicetaintrules=false,resource.k8s.io/v1beta2/devicetaintrules=false,resource.k8s.io/v1alpha3/devicetaintrules=false"

// Without its gate, the API server of 1.37.1 goes on serving the kind, and the scheduler ignores it.
var noRules = map[string]bool{"DRADeviceTaintRules": false}

func TestMain(m *testing.M) {
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) error {
		cluster, withoutRules, betaOnly = planes[0], planes[1], planes[2]
		return dhc.InstallOn(planes)
	}, realcluster.Options{Name: "taints"}, realcluster.Options{Name: "without-rules", RuntimeConfig: noRulesServed, ControllerGates: noRules},
		realcluster.Options{Name: "v1beta2-only", RuntimeConfig: "resource.k8s.io/v1/devicetaintrules=false,resource.k8s.io/v1beta2=true", ControllerGates: noRules})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rack is a node with DRA devices of one driver, for the Pods of one Namespace; nothing is remembered of earlier tests.
type rack struct {
	cp                          *realcluster.ControlPlane
	node                        *fakenode.Node
	namespace, driver, template string
}

func newRack(t *testing.T, cp *realcluster.ControlPlane, devices int) rack {
	t.Helper()
	return newRackOf(t, cp, devices, fakenode.Spec{})
}

// newRackOf is a rack whose node is as the spec says, but for its devices.
func newRackOf(t *testing.T, cp *realcluster.ControlPlane, devices int, spec fakenode.Spec) rack {
	t.Helper()
	forget(t, cp)
	r := rack{cp: cp, namespace: cp.Namespace(t), driver: realcluster.Unique("gpu") + ".example.com"}
	var names []string
	for i := range devices {
		names = append(names, fmt.Sprint("gpu-", i))
	}
	spec.DRA = map[string][]string{r.driver: names}
	r.node = fakenode.Start(t, cp, spec)
	r.template = workload.DeviceClass(t, cp, r.namespace, r.driver)
	t.Cleanup(func() { // ours and others' of this driver
		for _, rule := range r.rules(context.Background(), t) {
			_ = cp.Client.ResourceV1().DeviceTaintRules().Delete(context.Background(), rule.Name, metav1.DeleteOptions{})
		}
	})
	return r
}

// forget removes the state ConfigMap, and that of 0.1.0.
func forget(t *testing.T, cp *realcluster.ControlPlane) {
	t.Helper()
	for _, name := range []string{dhc.State, dhc.EarlierState} {
		if err := cp.Client.CoreV1().ConfigMaps(dhc.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			must(t, err)
		}
	}
}

// holder makes a Deployment of one Pod and says which device it holds.
func (r rack) holder(t *testing.T) (pod corev1.Pod, device string) {
	t.Helper()
	pod = workload.Deployment{Namespace: r.namespace, Name: "train", Replicas: 1, ClaimTemplate: r.template}.Create(t, r.cp)[0]
	return pod, deviceOf(pod)
}

// deviceOf is the name of the DRA device that a Pod shows.
func deviceOf(pod corev1.Pod) string {
	id, _ := workload.Device(pod)
	return id[strings.LastIndexByte(id, '/')+1:]
}

func (r rack) breaks(device string) { r.node.SetHealth(r.driver, device, "Unhealthy", "Xid 79") }
func (r rack) heals(device string)  { r.node.SetHealth(r.driver, device, "Healthy", "") }

// start runs the controller with a taint on DRA devices; evict and recover as in a policy, an empty evict meaning none.
func (r rack) start(t *testing.T, policy dhc.Policy) story.Run {
	t.Helper()
	return story.Start(t, r.cp, r.settings(t, policy))
}

func (r rack) settings(t *testing.T, policy dhc.Policy) dhc.Settings {
	t.Helper()
	policy.Namespace = r.namespace
	if policy.Taint == "" {
		policy.Taint = "{device: NoSchedule}"
	}
	return dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, r.cp, dhc.Account, ""), Policy: policy.Text(), InCluster: true}
}

// rules that select devices of this rack's driver, whoever made them.
func (r rack) rules(ctx context.Context, t *testing.T) (found []resourcev1.DeviceTaintRule) {
	t.Helper()
	list, err := r.cp.Client.ResourceV1().DeviceTaintRules().List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range list.Items {
		if s := rule.Spec.DeviceSelector; s != nil && s.Driver != nil && *s.Driver == r.driver {
			found = append(found, rule)
		}
	}
	return found
}

// awaitRule waits for the one rule, with this effect.
func (r rack) awaitRule(t *testing.T, device string, effect resourcev1.DeviceTaintEffect) (rule resourcev1.DeviceTaintRule) {
	t.Helper()
	realcluster.Eventually(t, 20*time.Second, fmt.Sprintf("one rule says %s of %s", effect, device), func() error {
		rules := r.rules(t.Context(), t)
		if len(rules) != 1 || rules[0].Spec.Taint.Effect != effect {
			return fmt.Errorf("there are %+v", rules)
		}
		rule = rules[0]
		return nil
	})
	s, taint := rule.Spec.DeviceSelector, rule.Spec.Taint
	if s.Device == nil || *s.Device != device || s.Pool == nil || *s.Pool != r.node.Name || taint.Key != key || taint.Value != "Unhealthy" {
		t.Errorf("the rule selects %+v and says %+v", s, taint)
	}
	if !strings.HasPrefix(rule.Name, "dhc-"+r.node.Name+"-"+device+"-") || rule.Labels["app.kubernetes.io/managed-by"] != "device-health-controller" {
		t.Errorf("the rule is called %s with labels %v", rule.Name, rule.Labels)
	}
	for label, want := range map[string]string{"node": r.node.Name, "driver": r.driver, "device": device} {
		if got := rule.Labels["device-health.io/"+label]; got != want {
			t.Errorf("the rule's label %s is %q, not %q", label, got, want)
		}
	}
	return rule
}

// awaitNextRule waits until the rule of the device is another than the one before it.
func (r rack) awaitNextRule(t *testing.T, device string, before resourcev1.DeviceTaintRule) resourcev1.DeviceTaintRule {
	t.Helper()
	realcluster.Eventually(t, 20*time.Second, "another rule", func() error {
		if rules := r.rules(t.Context(), t); len(rules) != 1 || rules[0].UID == before.UID {
			return fmt.Errorf("there are %+v", rules)
		}
		return nil
	})
	return r.awaitRule(t, device, before.Spec.Taint.Effect)
}

// awaitHeeded waits until kube-controller-manager has written the rule's status: what is written after that meets no write of its.
func (r rack) awaitHeeded(t *testing.T) {
	t.Helper()
	realcluster.Eventually(t, 20*time.Second, "the rule has a status", func() error {
		if rules := r.rules(t.Context(), t); len(rules) != 1 || len(rules[0].Status.Conditions) == 0 {
			return fmt.Errorf("there are %+v", rules)
		}
		return nil
	})
}

// awaitNoRule waits until the driver's devices have no rule any more.
func (r rack) awaitNoRule(t *testing.T, within time.Duration) {
	t.Helper()
	realcluster.Eventually(t, within, "the rule is gone", func() error {
		if rules := r.rules(t.Context(), t); len(rules) > 0 {
			return fmt.Errorf("there are %+v", rules)
		}
		return nil
	})
}

// staysWithoutRule watches for two seconds that none is made.
func (r rack) staysWithoutRule(t *testing.T) {
	t.Helper()
	realcluster.Never(t, 2*time.Second, "no rule is made", func() error {
		if rules := r.rules(t.Context(), t); len(rules) > 0 {
			return fmt.Errorf("there are %+v", rules)
		}
		return nil
	})
}

// awaitSaid waits for a verdict about the node's devices whose message contains some words.
func (r rack) awaitSaid(t *testing.T, controller story.Run, reason, words string) {
	t.Helper()
	realcluster.Eventually(t, 20*time.Second, fmt.Sprintf("verdict %s with %q", reason, words), func() error {
		verdicts := controller.Verdicts(t)
		for _, verdict := range verdicts {
			if verdict.Subject.Name == r.node.Name && verdict.Reason == reason && strings.Contains(verdict.Message, words) {
				return nil
			}
		}
		return fmt.Errorf("there are %+v", verdicts)
	})
}

// ruleWrites are the controller's writes of rules, in order: "patch 201 NoSchedule", "delete 200".
func ruleWrites(t *testing.T, controller story.Run) (lines []string) {
	t.Helper()
	for _, e := range controller.Writes(t) {
		if e.ObjectRef.Resource != "devicetaintrules" {
			continue
		}
		line := fmt.Sprint(e.Verb, " ", e.Response.Code)
		for _, effect := range []string{"None", "NoSchedule"} {
			if strings.Contains(string(e.Request), `"effect":"`+effect+`"`) {
				line += " " + effect
			}
		}
		if strings.Contains(e.RequestURI, "force") {
			line += " forced"
		}
		lines = append(lines, line)
	}
	return lines
}

// landedRuleWrites are those that changed something. kube-controller-manager writes the status of a new rule at its own pace; a write of
// ours that crosses it carries an old version, is refused with 409 and is sent again.
func landedRuleWrites(t *testing.T, controller story.Run) (lines []string) {
	t.Helper()
	for _, line := range ruleWrites(t, controller) {
		if !strings.Contains(line, " 409") {
			lines = append(lines, line)
		}
	}
	return lines
}

// expectRuleWrites says what was written, and no more. A record may come a moment after its effect; what is too much does not go away.
func expectRuleWrites(t *testing.T, controller story.Run, want ...string) {
	t.Helper()
	realcluster.Eventually(t, 0, "the writes of rules", func() error {
		if got := landedRuleWrites(t, controller); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("they are %q, not %q", got, want)
		}
		return nil
	})
}

func patchRule(t *testing.T, cp *realcluster.ControlPlane, name, body string) {
	t.Helper()
	_, err := cp.Client.ResourceV1().DeviceTaintRules().Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "kubectl-patch"})
	must(t, err)
}

func patchNode(t *testing.T, cp *realcluster.ControlPlane, name, body string) {
	t.Helper()
	_, err := cp.Client.CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "kubectl-patch"})
	must(t, err)
}
