package taint

import (
	"testing"
	"time"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
)

func TestANewBootOfTheNodeGivesTheDeviceBackOnProbationAfterHealthyFor(t *testing.T) {
	const healthyFor = 6 * time.Second
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{NoEvict: true, Recover: "{healthyFor: 6s, hold: 24h}"})
	r.breaks(device)
	rule := r.awaitRule(t, device, "NoSchedule")
	booted := time.Now()
	r.node.Reboot(t)
	r.heals(device)
	r.awaitSaid(t, controller, "Tainted", "its node has rebooted: on probation if nobody reports it bad for 6 s")
	r.awaitNoRule(t, 20*time.Second)
	if took := time.Since(booted); took < healthyFor {
		t.Errorf("the rule was removed %s after the boot", took)
	}
	r.awaitSaid(t, controller, "Untainted", "its node has rebooted, and nobody has reported it bad for 6 s: on probation for 24 h")
	controller.AwaitVerdict(t, r.node.Name, "OnProbation")
	r.breaks(device)
	if again := r.awaitNextRule(t, device, rule); again.Annotations[incidents] != "2" {
		t.Errorf("the relapse is not the second incident: %v", again.Annotations)
	}
	expectRuleWrites(t, controller, "patch 201 NoSchedule", "delete 200", "patch 201 NoSchedule")
	story.ExpectUntouched(t, controller, sick)
}

func TestKeepWaitsForAnOperatorWhateverBeginsAnew(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{NoEvict: true, Recover: "{healthyFor: 2s, hold: 3s, then: Keep}"})
	r.breaks(device)
	rule := r.awaitRule(t, device, "NoSchedule")
	r.node.Reboot(t)
	r.heals(device)
	r.awaitSaid(t, controller, "Tainted", "then: Keep waits for an operator")
	realcluster.Never(t, 8*time.Second, "the rule stays", func() error { // beyond the hold
		if now := r.rules(t.Context(), t); len(now) != 1 || now[0].UID != rule.UID {
			t.Fatalf("there are %+v", now)
		}
		return nil
	})
	expectRuleWrites(t, controller, "patch 201 NoSchedule")
	patchRule(t, cluster, rule.Name, `{"metadata":{"annotations":{"`+acknowledge+`":"fan replaced"}}}`)
	r.awaitNoRule(t, 10*time.Second)
	r.awaitSaid(t, controller, "Untainted", "acknowledged, and nobody has reported it bad since")
	expectRuleWrites(t, controller, "patch 201 NoSchedule", "delete 200")
	story.ExpectUntouched(t, controller, sick)
}
