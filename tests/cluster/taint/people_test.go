package taint

import (
	"fmt"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
)

// staysAs watches for two seconds that nobody writes on the rule.
func (r rack) staysAs(t *testing.T, rule resourcev1.DeviceTaintRule) {
	t.Helper()
	realcluster.Never(t, 2*time.Second, "the rule stays as it is", func() error {
		now, err := r.cp.Client.ResourceV1().DeviceTaintRules().Get(t.Context(), rule.Name, metav1.GetOptions{})
		if err == nil && (now.UID != rule.UID || now.Spec.Taint.Effect != rule.Spec.Taint.Effect) {
			err = fmt.Errorf("%+v", now)
		}
		return err
	})
}

func TestAnEffectThatAPersonChangedIsLeftAsItIsEvenWhenTheDeviceIsWell(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{NoEvict: true, Recover: "{healthyFor: 1s, hold: 24h}"})
	r.breaks(device)
	rule := r.awaitRule(t, device, "NoSchedule")
	if _, err := cluster.Kubectl("", "patch", "devicetaintrule", rule.Name, "--type=merge", "-p", `{"spec":{"taint":{"effect":"None"}}}`); err != nil {
		t.Fatal(err)
	}
	rule = r.awaitRule(t, device, "None")
	r.awaitSaid(t, controller, "ChangedByOther", "its effect is None")
	story.AwaitEvent(t, cluster, "default", r.node.Name, "ChangedByOther")
	r.staysAs(t, rule)
	r.heals(device)
	r.staysAs(t, rule)
	expectRuleWrites(t, controller, "patch 201 NoSchedule")
	story.ExpectUntouched(t, controller, sick)
}

// Our apply of a field that an operator owns by now: FieldManagerConflict, said and never forced.
func TestAFieldThatAPersonTookFromUsIsNotForcedBack(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{NoEvict: true, Recover: "{healthyFor: 1h, hold: 24h}"})
	r.breaks(device)
	rule := r.awaitRule(t, device, "NoSchedule")
	r.awaitHeeded(t)
	patchRule(t, cluster, rule.Name, `{"metadata":{"annotations":{"`+incidents+`":"77"}}}`)
	r.awaitSaid(t, controller, "ChangedByOther", "conflict")
	writes := ruleWrites(t, controller)
	if len(writes) != 2 || !strings.HasPrefix(writes[1], "patch 409") || strings.Contains(fmt.Sprint(writes), "forced") {
		t.Errorf("writes of rules: %q", writes)
	}
	r.staysAs(t, rule)
	if again := ruleWrites(t, controller); len(again) != 2 {
		t.Errorf("it tries again and again: %q", again)
	}
	now, err := cluster.Client.ResourceV1().DeviceTaintRules().Get(t.Context(), rule.Name, metav1.GetOptions{})
	if err != nil || now.Annotations[incidents] != "77" {
		t.Errorf("the operator's word is gone: %v %v", now.Annotations, err)
	}
	story.ExpectUntouched(t, controller, sick)
}

func TestARuleThatAPersonDeletesWhileNoControllerRunsIsNotMadeAgain(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	settings := r.settings(t, dhc.Policy{NoEvict: true, Recover: "{healthyFor: 1h, hold: 24h}"})
	first := story.Start(t, cluster, settings)
	r.breaks(device)
	rule := r.awaitRule(t, device, "NoSchedule")
	story.AwaitState(t, cluster, string(rule.UID))
	first.Kill()
	must(t, cluster.Client.ResourceV1().DeviceTaintRules().Delete(t.Context(), rule.Name, metav1.DeleteOptions{}))
	second := story.Start(t, cluster, settings)
	r.awaitSaid(t, second, "Acknowledged", "an operator vouches for the device")
	r.staysWithoutRule(t)
	expectRuleWrites(t, second)
	story.ExpectUntouched(t, second, sick)
}

func TestSomebodyElsesRuleForTheDeviceIsEnoughAndIsNeverTouched(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	theirs := foreignRule(t, r, device)
	controller := r.start(t, dhc.Policy{Recover: "{hold: 24h}"})
	r.breaks(device)
	r.awaitSaid(t, controller, "TaintedByOther", theirs.Name)
	replacement := story.AwaitReplacement(t, cluster, sick, 1)[0]
	if deviceOf(replacement) == device {
		t.Errorf("the replacement is on %s again", device)
	}
	r.staysAs(t, theirs)
	expectRuleWrites(t, controller)
	// Its end is nobody's word about our incident: ours takes its place.
	must(t, cluster.Client.ResourceV1().DeviceTaintRules().Delete(t.Context(), theirs.Name, metav1.DeleteOptions{}))
	r.awaitRule(t, device, "NoSchedule")
	expectRuleWrites(t, controller, "patch 201 NoSchedule")
}

func TestARuleUnderOurNameThatIsNotOursIsNeverTouched(t *testing.T) {
	r := newRack(t, cluster, 2)
	_, device := r.holder(t)
	settings := r.settings(t, dhc.Policy{NoEvict: true, Recover: "{healthyFor: 1s, hold: 24h}"})
	first := story.Start(t, cluster, settings)
	r.breaks(device)
	name := r.awaitRule(t, device, "NoSchedule").Name
	first.Kill()
	forget(t, cluster)
	must(t, cluster.Client.ResourceV1().DeviceTaintRules().Delete(t.Context(), name, metav1.DeleteOptions{}))
	other := "elsewhere"
	theirs, err := cluster.Client.ResourceV1().DeviceTaintRules().Create(t.Context(), &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.DeviceTaintRuleSpec{DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: &r.driver, Pool: &other},
			Taint: resourcev1.DeviceTaint{Key: "example.com/mine", Effect: "NoSchedule"}}}, metav1.CreateOptions{})
	must(t, err)
	second := story.Start(t, cluster, settings)
	r.awaitSaid(t, second, "ChangedByOther", "is not as we make it (its label app.kubernetes.io/managed-by is gone)")
	r.staysAs(t, *theirs)
	expectRuleWrites(t, second)
}

func foreignRule(t *testing.T, r rack, device string) resourcev1.DeviceTaintRule {
	t.Helper()
	rule, err := r.cp.Client.ResourceV1().DeviceTaintRules().Create(t.Context(), &resourcev1.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: realcluster.Unique("theirs")},
		Spec: resourcev1.DeviceTaintRuleSpec{DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: &r.driver, Pool: &r.node.Name, Device: &device},
			Taint: resourcev1.DeviceTaint{Key: "example.com/bad", Effect: "NoSchedule"}}}, metav1.CreateOptions{})
	must(t, err)
	return *rule
}

func TestAStagedRuleSaysTheServersOwnSentenceAndThenKeepsPodsOff(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	stream, err := cluster.Client.ResourceV1().DeviceTaintRules().Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	t.Cleanup(stream.Stop)
	controller := r.start(t, dhc.Policy{Taint: "{device: Staged}", Recover: "{hold: 24h}"})
	r.breaks(device)
	story.AwaitReplacement(t, cluster, sick, 1)
	rule := r.awaitRule(t, device, "NoSchedule")
	expectRuleWrites(t, controller, "patch 201 None", "patch 200 NoSchedule")
	sentence := ""
	deadline := time.After(time.Minute)
	for sentence == "" {
		select {
		case event := <-stream.ResultChan():
			rule, ok := event.Object.(*resourcev1.DeviceTaintRule)
			if !ok {
				t.Fatalf("%+v", event)
			}
			for _, condition := range rule.Status.Conditions {
				if condition.Type == "EvictionInProgress" && condition.Reason == "NoEffect" {
					sentence = condition.Message
				}
			}
		case <-deadline:
			t.Fatal("the API server said nothing about the rule with effect None")
		}
	}
	said := "the API server says: " + sentence
	controller.AwaitSays(t, said)
	event := story.AwaitEvent(t, cluster, "default", r.node.Name, "Tainted")
	// The sentence is the server's of this moment: of the effect None, or already of NoSchedule.
	if !strings.Contains(event.Note, "DeviceTaintRule "+rule.Name) {
		t.Errorf("the Event says %q, without the rule's name", event.Note)
	}
	for _, e := range controller.Writes(t) {
		if e.ObjectRef.Resource == "devicetaintrules" && strings.Contains(string(e.Request), `"NoSchedule"`) && !e.Received.Before(controller.EvictedAt(t, sick)) {
			t.Error("the Pod was evicted while the effect was None")
		}
	}
}
