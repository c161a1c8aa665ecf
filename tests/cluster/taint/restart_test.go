package taint

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

const entry = "incidents.json"

// again starts the next controller, asked about all that its predecessors did, too.
func again(t *testing.T, settings dhc.Settings, since time.Time) story.Run {
	t.Helper()
	return story.Start(t, cluster, settings).Since(since)
}

// Killed after the rule, after the eviction, in the hold and on probation: as if it had never been away.
func TestKilledAtEachStepItGoesOnWhereItWas(t *testing.T) {
	r := newRack(t, cluster, 1)
	sick, device := r.holder(t)
	settings, began := r.settings(t, dhc.Policy{EvictAfter: "2s", Full: "{wait: 0s}", Recover: "{hold: 30s, healthyFor: 1h}"}), time.Now()
	controller := story.Start(t, cluster, settings)
	r.breaks(device)
	r.awaitRule(t, device, "NoSchedule")
	controller.Kill()

	controller = again(t, settings, began)
	story.AwaitGone(t, cluster, sick)
	story.ExpectEvictedOnce(t, controller, sick)
	gone := controller.EvictedAt(t, sick)
	controller.Kill()

	controller = again(t, settings, began)
	r.awaitSaid(t, controller, "Tainted", "held for 30 s (incident 1)")
	story.AwaitState(t, cluster, `"quietSince"`)
	controller.Kill()

	controller = again(t, settings, began)
	r.awaitSaid(t, controller, "Tainted", "held for 30 s (incident 1)")
	r.heals(device) // so that the Pod that waits for it does not relapse yet
	r.awaitNoRule(t, 20*time.Second)
	if held := time.Since(gone); held < 29*time.Second { // the state keeps whole seconds
		t.Errorf("with three restarts it was held for %s, not 30 s", held)
	}
	story.AwaitState(t, cluster, `"phase":"Probation"`)
	story.ExpectEvictedOnce(t, controller, sick)
	expectRuleWrites(t, controller, "patch 201 NoSchedule", "delete 200")
	controller.Kill()

	controller = again(t, settings, began)
	controller.AwaitVerdict(t, r.node.Name, "OnProbation")
	workload.AwaitRunning(t, cluster, r.namespace, "train", 1)
	r.breaks(device)
	if second := r.awaitRule(t, device, "NoSchedule"); second.Annotations[incidents] != "2" {
		t.Errorf("the relapse is not the second incident: %v", second.Annotations)
	}
	expectRuleWrites(t, controller, "patch 201 NoSchedule", "delete 200", "patch 201 NoSchedule")
}

// Somebody has written nonsense into the state: said, written anew, and the rule itself remembers the incident.
func TestADamagedStateIsSaidAndRebuiltFromTheRules(t *testing.T) {
	for name, text := range map[string]string{"nonsense": "{{{", "empty": ""} {
		t.Run(name, func(t *testing.T) {
			r := newRack(t, cluster, 2)
			sick, device := r.holder(t)
			settings, began := r.settings(t, dhc.Policy{Recover: "{hold: 24h}"}), time.Now()
			first := story.Start(t, cluster, settings)
			r.breaks(device)
			rule := r.awaitRule(t, device, "NoSchedule")
			story.AwaitReplacement(t, cluster, sick, 1)
			story.AwaitState(t, cluster, string(rule.UID))
			first.Kill()
			body := fmt.Sprintf(`{"data":{%q:%q}}`, entry, text)
			_, err := cluster.Client.CoreV1().ConfigMaps(dhc.Namespace).Patch(t.Context(), dhc.State, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "kubectl-edit"})
			must(t, err)
			second := again(t, settings, began)
			second.AwaitSays(t, "StateDamaged")
			r.awaitSaid(t, second, "Tainted", "(incident 1)")
			story.AwaitState(t, cluster, string(rule.UID))
			// The API server shows our write a moment before its answer reaches us.
			realcluster.Eventually(t, 5*time.Second, "the damage is mended", func() error {
				for _, verdict := range second.Verdicts(t) {
					if strings.HasPrefix(verdict.Reason, "State") {
						return fmt.Errorf("%+v", verdict)
					}
				}
				return nil
			})
			realcluster.Never(t, time.Second, "the state is in order again", func() error {
				for _, verdict := range second.Verdicts(t) {
					if strings.HasPrefix(verdict.Reason, "State") {
						return fmt.Errorf("%+v", verdict)
					}
				}
				return nil
			})
			r.staysAs(t, rule)
			expectRuleWrites(t, second, "patch 201 NoSchedule")
		})
	}
}

func TestObserveModeWritesNothingButEventsAndItsMemory(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	settings, began := r.settings(t, dhc.Policy{After: "3s", Recover: "{hold: 24h}"}), time.Now()
	settings.Mode = "observe"
	first := story.Start(t, cluster, settings)
	r.breaks(device)
	first.AwaitVerdict(t, r.node.Name, "WouldTaint")
	story.AwaitState(t, cluster, device)
	first.Kill()
	second := again(t, settings, began)
	second.AwaitVerdict(t, r.node.Name, "WouldTaint")
	second.Stays(t, sick, 2*time.Second)
	r.staysWithoutRule(t)
	for _, write := range second.Writes(t) {
		ours := write.ObjectRef.Resource == "configmaps" && write.ObjectRef.Namespace == dhc.Namespace &&
			(write.ObjectRef.Name == dhc.State || write.ObjectRef.Name == dhc.Status)
		if !ours && write.ObjectRef.Resource != "events" {
			t.Errorf("observe mode wrote: %s %s", write.Verb, write.RequestURI)
		}
	}
	now, err := cluster.Client.CoreV1().Pods(sick.Namespace).Get(t.Context(), sick.Name, metav1.GetOptions{})
	if err != nil || workload.Condition(now, story.Condition) != nil {
		t.Errorf("the Pod has our condition: %v", err)
	}
}

// Once all is done nothing is written: neither rules nor the state.
func TestWhileNothingChangesNothingIsWritten(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{Recover: "{hold: 24h}"})
	r.breaks(device)
	rule := r.awaitRule(t, device, "NoSchedule")
	story.AwaitReplacement(t, cluster, sick, 1)
	story.AwaitState(t, cluster, string(rule.UID))
	realcluster.Eventually(t, 10*time.Second, "the Pod's object is gone", func() error {
		_, err := cluster.Client.CoreV1().Pods(sick.Namespace).Get(t.Context(), sick.Name, metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("it is still there")
		}
		return nil
	})
	count := func() int { return len(controller.Writes(t)) }
	before := count()
	realcluster.Eventually(t, 20*time.Second, "six seconds without a write", func() error {
		quiet := time.Now()
		for time.Since(quiet) < 6*time.Second {
			if now := count(); now != before {
				before = now
				return fmt.Errorf("%d writes", now)
			}
			time.Sleep(100 * time.Millisecond)
		}
		return nil
	})
}
