package upgrade

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// awaitFirstIncidents waits until the controller says of each rule's device that the rule keeps Pods off, and has written down that its first
// incident goes on.
func awaitFirstIncidents(t *testing.T, run story.Run, rules ...resourcev1.DeviceTaintRule) {
	t.Helper()
	for _, rule := range rules {
		device := *rule.Spec.DeviceSelector.Device
		realcluster.Eventually(t, time.Minute, device+" is said to be tainted", func() error {
			verdicts := run.Verdicts(t)
			if !slices.ContainsFunc(verdicts, func(v dhc.Verdict) bool {
				return strings.HasSuffix(v.Device, "/"+device) && v.Reason == "Tainted" && strings.Contains(v.Message, rule.Name)
			}) {
				return fmt.Errorf("there are %+v", verdicts)
			}
			return nil
		})
		awaitRemembered(t, device, record{1, "Open", string(rule.UID)})
	}
}

// record is what this version's state says of one device: how many incidents it has had, the phase of the last, and our rule. The driver's words come
// with each: who has only found our rule knows none.
type record struct {
	incidents   int
	phase, rule string
}

func awaitRemembered(t *testing.T, device string, wanted record) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, fmt.Sprintf("the state says %+v of %s", wanted, device), func() error {
		stored, err := cluster.Client.CoreV1().ConfigMaps(dhc.Namespace).Get(t.Context(), dhc.State, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var state struct {
			Devices []struct {
				Source, Device string
				Past           struct {
					Incidents int
					History   []struct{ Reason string }
				}
				Incident struct{ Phase string }
				Ours     struct{ Rule struct{ UID string } }
			}
		}
		must(t, json.Unmarshal([]byte(stored.Data["incidents.json"]), &state))
		for _, one := range state.Devices {
			said := len(one.Past.History) > 0 && one.Past.History[len(one.Past.History)-1].Reason == "Xid 79"
			if one.Source == "dra" && one.Device == device && said && wanted == (record{one.Past.Incidents, one.Incident.Phase, one.Ours.Rule.UID}) {
				return nil
			}
		}
		return fmt.Errorf("it says %s", stored.Data["incidents.json"])
	})
}

// 0.1.0, this version, 0.1.0 and this version again, each taking over under open incidents, rules, node taints, an eviction that a budget
// holds, and a Job's credits: nothing is orphaned, done twice or forgotten.
func TestFrom010AndBackAndAgainNothingIsOrphanedDoneTwiceOrForgotten(t *testing.T) {
	f := newFleet(t)

	installed(t, release010)
	first := f.start(t, release010)
	first.AwaitSays(t, `"msg":"leading"`)
	repaired, ofRepaired := f.moves(t, "repaired")
	blocked, device := f.holder(t, "blocked")
	workload.Budget(t, cluster, blocked.Namespace, "blocked", 1)
	f.breaks(device)
	ofBlocked := f.awaitRule(t, device)
	first.AwaitVerdict(t, blocked.Name, "BlockedByBudget")
	f.fails(t, f.nodes[0])
	f.jobLoses(t)
	await010Remembers(t, string(ofRepaired.UID), string(ofBlocked.UID), f.nodes[0].Name)

	// The upgrade, as a rollout does it: incidents go on under the rules that 0.1.0 has made, and what it had not done yet is done.
	installed(t, thisVersion)
	second := f.start(t, thisVersion)
	must(t, first.End())
	second.AwaitSays(t, `"msg":"leading"`)
	_, written := stateOf010(t)
	awaitFirstIncidents(t, second, ofRepaired, ofBlocked)
	f.stand(t, ofRepaired, ofBlocked)
	must(t, cluster.Client.PolicyV1().PodDisruptionBudgets(blocked.Namespace).Delete(t.Context(), "blocked", metav1.DeleteOptions{}))
	story.AwaitReplacement(t, cluster, blocked, 1)
	f.evicted = append(f.evicted, blocked)
	_, ofNew := f.moves(t, "new")
	awaitFirstIncidents(t, second, ofNew)
	f.expectDoneOnce(t, second)
	if text, now := stateOf010(t); now != written {
		t.Errorf("0.1.0's ConfigMap was written: %s", text)
	}

	// The rollback, after a crash: 0.1.0 keeps what it remembers, leaves the rule alone that it does not know, and works on.
	installed(t, release010)
	third := f.start(t, release010)
	second.Kill()
	third.AwaitSays(t, `"msg":"leading"`)
	f.stand(t, ofRepaired, ofBlocked, ofNew)
	_, ofRollback := f.moves(t, "rollback")
	f.dra.SetHealth(f.driver, repaired, "Healthy", "")
	f.acknowledges(t, ofRepaired)
	f.fails(t, f.nodes[1])
	f.jobLoses(t)
	await010Remembers(t, string(ofRollback.UID), f.nodes[1].Name)
	f.expectDoneOnce(t, third)

	// Forward again: what 0.1.0 has ended is over, what it has begun goes on, and so does what it did not know.
	installed(t, thisVersion)
	fourth := f.start(t, thisVersion)
	must(t, third.End())
	fourth.AwaitSays(t, `"msg":"leading"`)
	awaitFirstIncidents(t, fourth, ofBlocked, ofNew, ofRollback)
	awaitRemembered(t, repaired, record{1, "Ended", ""})
	f.stand(t, ofBlocked, ofNew, ofRollback)
	f.expectDoneOnce(t, fourth)
	for _, rule := range []resourcev1.DeviceTaintRule{ofBlocked, ofNew, ofRollback} {
		f.dra.SetHealth(f.driver, *rule.Spec.DeviceSelector.Device, "Healthy", "")
		f.acknowledges(t, rule)
	}
	for _, rule := range []resourcev1.DeviceTaintRule{ofBlocked, ofNew, ofRollback} {
		awaitRemembered(t, *rule.Spec.DeviceSelector.Device, record{1, "Ended", ""})
	}
	for _, node := range f.nodes {
		f.recovers(t, node)
	}
	f.stand(t)
	f.expectCredits(t)
	f.expectDoneOnce(t, fourth)
}
