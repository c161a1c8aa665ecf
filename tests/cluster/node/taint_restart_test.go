package node

import (
	"testing"
	"time"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// Not beside others: it has controllers of its own, one after the other. Killed before the eviction, in the hold and on probation, the same end.
func TestAControllerKilledAfterTheRuleInTheHoldAndOnProbationComesToTheSameEnd(t *testing.T) {
	alone(t)
	b := newBench(t, 1, "")
	settings := func(evictAfter string) dhc.Settings {
		return dhc.Settings{InCluster: true, Policy: dhc.Policy{Namespace: b.namespace, EvictAfter: evictAfter, Full: "{wait: 0s}", Taint: "{device: NoSchedule}",
			Recover: "{healthyFor: 1h, hold: 60s}"}.Text()}
	}
	began := time.Now()
	b.controller = story.Start(t, cluster, settings("1h")) // it is killed before it evicts
	b.breaks(t)
	rule := b.awaitRule(t, nil)
	b.controller.Kill()
	story.ExpectUntouched(t, b.controller, b.sick)

	b.controller = story.Start(t, cluster, settings("0s")).Since(began)
	story.AwaitGone(t, cluster, b.sick)
	story.ExpectEvictedOnce(t, b.controller, b.sick)
	gone := b.controller.EvictedAt(t, b.sick)
	b.heals(t) // so that the Pod that waits for it does not relapse
	story.AwaitState(t, cluster, `"quietSince"`)
	b.controller.Kill()
	if now := ruleOf(t, b.driver, b.device); now == nil || now.UID != rule.UID {
		t.Fatalf("in the hold the rule was %+v and is %+v", rule, now)
	}

	b.controller = story.Start(t, cluster, settings("0s")).Since(began)
	if held := b.awaitUntainted(t, gone, "held for 1 min (incident 1) without evidence"); held < 59*time.Second { // the state keeps whole seconds
		t.Errorf("with two restarts it was held for %s, not 60 s", held)
	}
	expectRuleWrites(t, b.controller, rule.Name, "patch 201", "delete 200")
	story.AwaitState(t, cluster, `"phase":"Probation"`)
	b.controller.Kill()

	again := workload.AwaitRunning(t, cluster, b.namespace, "work", 1)[0]
	awaitHealth(t, again, "Healthy")
	b.controller = story.Start(t, cluster, settings("0s")).Since(began)
	b.awaitSaid(t, "OnProbation", "")
	b.breaks(t)
	if relapse := b.awaitRule(t, nil); relapse.Annotations[incidents] != "2" {
		t.Errorf("the relapse is not the second incident: %v", relapse.Annotations)
	}
	expectRuleWrites(t, b.controller, rule.Name, "patch 201", "delete 200", "patch 201")
	story.ExpectEvictedOnce(t, b.controller, b.sick)
	story.ExpectUntouched(t, b.controller, again) // nobody is evicted twice for the same device
}
