package owners

import (
	"strings"
	"testing"
	"time"

	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// disruptions is a podFailurePolicy of one rule: what a pod costs its Job that was evicted.
func disruptions(action string) map[string]any {
	condition := map[string]any{"type": "DisruptionTarget", "status": "True"}
	return map[string]any{"rules": []any{map[string]any{"action": action, "onPodConditions": []any{condition}}}}
}

func (p place) jobSet() workload.JobSet {
	return workload.JobSet{Namespace: p.namespace, Name: "train", Parallelism: 4, Resource: p.gpu}
}

func TestAnEvictedPodOfAJobSetCostsItsJobARetryAndTheOthersStay(t *testing.T) {
	p := newPlace(t)
	set := p.jobSet()
	set.BackoffLimit = 6
	pods := set.Create(t, cluster)
	sick := member(t, pods, indexed("2"))
	controller := p.start(t, "")
	p.breakUnder(t, sick)
	awaitMembers(t, pods, 3)
	story.ExpectEvictedOnce(t, controller, sick)
	expectFailures(t, controller, set, 1)
	expectRestarts(t, set, 0, 0)
}

func TestAJobSetWhoseJobIgnoresDisruptionsPaysNothingForAnEvictedPod(t *testing.T) {
	p := newPlace(t)
	set := p.jobSet()
	set.PodFailurePolicy = disruptions("Ignore")
	pods := set.Create(t, cluster)
	sick := member(t, pods, indexed("3"))
	controller := p.start(t, "")
	p.breakUnder(t, sick)
	controller.AwaitSaidOf(t, sick.Name, "CreditNotNeeded")
	awaitMembers(t, pods, 3)
	story.ExpectEvictedOnce(t, controller, sick)
	expectFailures(t, controller, set, 0)
	expectRestarts(t, set, 0, 0)
}

func TestByDefaultAPodOfAJobSetWhoseJobHasNoRetryStaysOnItsDevice(t *testing.T) {
	p := newPlace(t)
	set := p.jobSet()
	set.FailurePolicy = map[string]any{"maxRestarts": 3}
	pods := set.Create(t, cluster)
	sick := member(t, pods, indexed("0"))
	controller := p.start(t, "")
	p.breakUnder(t, sick)
	held := controller.AwaitVerdict(t, sick.Name, "NotCreditable")
	if !strings.Contains(held.Message, "the loss would end Job train-workers-0") || !strings.Contains(held.Message, "belongs to JobSet train") {
		t.Errorf("it says %s", held.Message)
	}
	controller.Stays(t, sick, 8*time.Second)
	expectFailures(t, controller, set, 0)
}

func TestWithHoldAPodOfAJobSetStaysOnItsDevice(t *testing.T) {
	p := newPlace(t)
	set := p.jobSet()
	set.BackoffLimit = 6
	pods := set.Create(t, cluster)
	sick := member(t, pods, indexed("0"))
	controller := p.start(t, ", whenNotCreditable: Hold")
	p.breakUnder(t, sick)
	held := controller.AwaitVerdict(t, sick.Name, "NotCreditable")
	if !strings.Contains(held.Message, "belongs to JobSet train") {
		t.Errorf("it says %s", held.Message)
	}
	controller.Stays(t, sick, 8*time.Second)
	expectFailures(t, controller, set, 0)
}

func TestAJobSetWhoseJobHasNoRetryRestartsAsAWholeWhenAPodIsEvicted(t *testing.T) {
	for name, test := range map[string]struct {
		failure, pods map[string]any
		counted       int
	}{
		"and has one restart less": {failure: map[string]any{"maxRestarts": 3}, counted: 1},
		"and the restart does not count where its rules say so": {
			failure: map[string]any{"maxRestarts": 0, "rules": []any{map[string]any{"name": "disrupted",
				"action": "RestartJobSetAndIgnoreMaxRestarts", "onJobFailureReasons": []string{"PodFailurePolicy"}}}},
			pods: disruptions("FailJob")},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			set := p.jobSet()
			set.FailurePolicy, set.PodFailurePolicy = test.failure, test.pods
			pods := set.Create(t, cluster)
			sick := member(t, pods, indexed("1"))
			controller := p.start(t, ", whenNotCreditable: Evict")
			p.breakUnder(t, sick)
			awaitMembers(t, pods, 0)
			story.ExpectEvictedOnce(t, controller, sick)
			expectRestarts(t, set, 1, test.counted)
			if evicted := controller.EvictedIn(t, p.namespace); evicted != 1 {
				t.Errorf("%d pods were evicted", evicted)
			}
			expectNoJobWrite(t, controller, p.namespace)
		})
	}
}
