package taint

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
)

const notServed = `device_health_watch_state{kind="DeviceTaintRule",state="NotServed"}`

// expectServed says in which version the controller has found the kind: in its log and in a metric.
func expectServed(t *testing.T, controller story.Run, version string) {
	t.Helper()
	controller.AwaitSays(t, `"msg":"capability"`, `"kind":"DeviceTaintRule"`, `"apiVersion":"`+version+`"`)
	realcluster.Eventually(t, 0, "the metric says "+version, func() error {
		for _, one := range []string{"resource.k8s.io/v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1alpha3", "none"} {
			if served := controller.Metric(t, `device_health_taint_rules_api{api_version="`+one+`"}`); (served == 1) != (one == version) {
				return fmt.Errorf("%s has %v", one, served)
			}
		}
		return nil
	})
}

// Servers without DeviceTaintRules: nothing is written that they do not know, and what cannot be done is said.
func TestWithoutDeviceTaintRulesTheVerdictSaysSoAndThePodStays(t *testing.T) {
	r := newRack(t, withoutRules, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{Recover: "{hold: 24h}"})
	if controller.Metric(t, notServed) != 1 {
		t.Error("the metric does not say that the kind is not served")
	}
	expectServed(t, controller, "none")
	r.breaks(device)
	r.awaitSaid(t, controller, "TaintUnsupported", "the server has no DeviceTaintRules")
	controller.Stays(t, sick, 2*time.Second)
	expectRuleWrites(t, controller)
}

func TestWithoutDeviceTaintRulesTheNodeIsTaintedIfThePolicySaysSo(t *testing.T) {
	r := newRack(t, withoutRules, 2)
	sick, device := r.holder(t)
	other := fakenode.Start(t, withoutRules, fakenode.Spec{DRA: map[string][]string{r.driver: {"gpu-0", "gpu-1"}}})
	controller := r.start(t, dhc.Policy{Taint: "{device: NoSchedule, node: NoSchedule, nodeAtLeast: {devices: 1, percent: 50}}", Recover: "{hold: 4s}"})
	r.breaks(device)
	awaitShape(t, withoutRules, r.node.Name, key+"=Unhealthy:NoSchedule unschedulable=false")
	replacement := story.AwaitReplacement(t, withoutRules, sick, 1)[0]
	if replacement.Spec.NodeName != other.Name {
		t.Errorf("the replacement runs on %s", replacement.Spec.NodeName)
	}
	story.ExpectEvictedOnce(t, controller, sick)
	controller.AwaitSaidOf(t, r.node.Name, "Tainted")
	awaitShape(t, withoutRules, r.node.Name, " unschedulable=false")
	expectRuleWrites(t, controller)
}

func TestWhereOnlyABetaVersionIsServedTheRuleIsMadeInIt(t *testing.T) {
	r := newRack(t, betaOnly, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{Recover: "{healthyFor: 1s, hold: 15s}"})
	expectServed(t, controller, "resource.k8s.io/v1beta2")
	r.breaks(device)
	story.AwaitReplacement(t, betaOnly, sick, 1) // perhaps on the same device: this scheduler sees no rules
	story.ExpectEvictedOnce(t, controller, sick)
	r.heals(device)
	realcluster.Eventually(t, 20*time.Second, "the rule was made and removed", func() error {
		if got := landedRuleWrites(t, controller); fmt.Sprint(got) != "[patch 201 NoSchedule delete 200]" {
			return fmt.Errorf("writes of rules: %q", got)
		}
		return nil
	})
	for _, e := range controller.Writes(t) {
		if e.ObjectRef.Resource == "devicetaintrules" && !strings.HasPrefix(e.RequestURI, "/apis/resource.k8s.io/v1beta2/") {
			t.Errorf("it wrote %s", e.RequestURI)
		}
	}
}

// The kind goes while the controller runs, as when a version is turned off, and is back later (it asks every five minutes: here the next one
// does). That the rules cannot be seen is nobody's word about the device.
func TestAKindThatIsNoLongerServedIsNoticedAndItsRulesAreNotTakenForRemoved(t *testing.T) {
	absent := withoutRules.Options.RuntimeConfig
	serve := func(what string) {
		t.Helper()
		must(t, withoutRules.StopAPIServer())
		withoutRules.Options.RuntimeConfig = what
		must(t, withoutRules.StartAPIServer())
	}
	t.Cleanup(func() { serve(absent) })
	serve("")
	r := newRack(t, withoutRules, 2)
	_, device := r.holder(t)
	settings, began := r.settings(t, dhc.Policy{NoEvict: true, Recover: "{hold: 24h}"}), time.Now()
	first := story.Start(t, withoutRules, settings)
	r.breaks(device)
	rule := r.awaitRule(t, device, "NoSchedule")
	r.awaitSaid(t, first, "Tainted", rule.Name)
	serve(absent)
	r.awaitSaid(t, first, "TaintUnsupported", "the server has no DeviceTaintRules")
	expectServed(t, first, "none")
	first.Kill()
	serve("")
	second := story.Start(t, withoutRules, settings).Since(began)
	r.awaitSaid(t, second, "Tainted", rule.Name)
	expectServed(t, second, "resource.k8s.io/v1")
	r.staysAs(t, rule)
	expectRuleWrites(t, second, "patch 201 NoSchedule")
}
