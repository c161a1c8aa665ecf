package taint

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

func TestADriversTaintThatIsGoneForHealthyForEndsOurs(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{Recover: "{healthyFor: 10s, hold: 24h}"})
	r.breaks(device)
	r.awaitRule(t, device, "NoSchedule")
	story.AwaitReplacement(t, cluster, sick, 1)
	must(t, r.node.PublishSlice(t.Context(), r.driver, fakenode.NoSchedule(device)))
	r.awaitSaid(t, controller, "Tainted", "it is still reported bad")
	gone := time.Now()
	must(t, r.node.PublishSlice(t.Context(), r.driver, nil))
	r.awaitSaid(t, controller, "Tainted", "its driver's own taint is gone; it must stay gone for 10 s")
	r.awaitNoRule(t, 10*time.Second)
	if took := time.Since(gone); took < 10*time.Second {
		t.Errorf("the rule was removed after %s", took)
	}
	r.awaitSaid(t, controller, "Untainted", "its driver's own taint has been gone for 10 s")
	expectRuleWrites(t, controller, "patch 201 NoSchedule", "delete 200")
}

func TestAHolderThatReportsHealthyForHealthyForEndsTheTaint(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{NoEvict: true, Recover: "{healthyFor: 10s, hold: 24h}"})
	r.breaks(device)
	r.awaitRule(t, device, "NoSchedule")
	healed := time.Now()
	r.heals(device)
	r.awaitSaid(t, controller, "Tainted", "a pod that holds it reports Healthy, and must for 10 s")
	r.awaitNoRule(t, 10*time.Second)
	if took := time.Since(healed); took < 10*time.Second {
		t.Errorf("the rule was removed after %s", took)
	}
	r.awaitSaid(t, controller, "Untainted", "a pod that holds it has reported Healthy for 10 s")
	story.ExpectUntouched(t, controller, sick)
	expectRuleWrites(t, controller, "patch 201 NoSchedule", "delete 200")
}

func TestAnotherCardInTheSamePlaceStartsClean(t *testing.T) {
	r := newRack(t, cluster, 2)
	for _, device := range []string{"gpu-0", "gpu-1"} {
		r.node.SetCard(r.driver, device, "GPU-old-"+device)
	}
	must(t, r.node.PublishSlice(t.Context(), r.driver, nil))
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{Recover: "{hold: 24h}"})
	r.breaks(device)
	rule := r.awaitRule(t, device, "NoSchedule")
	if rule.Annotations["device-health.io/identity"] != "GPU-old-"+device {
		t.Errorf("the rule has the annotations %v", rule.Annotations)
	}
	story.AwaitReplacement(t, cluster, sick, 1)
	// The driver restarts: its slices vanish and come back, which proves nothing.
	must(t, r.node.PublishSlice(t.Context(), r.driver, nil))
	realcluster.Never(t, time.Second, "the rule stays", func() error {
		if rules := r.rules(t.Context(), t); len(rules) != 1 {
			return fmt.Errorf("there are %+v", rules)
		}
		return nil
	})
	r.node.SetCard(r.driver, device, "GPU-new")
	r.heals(device)
	must(t, r.node.PublishSlice(t.Context(), r.driver, nil))
	r.awaitNoRule(t, 10*time.Second)
	r.awaitSaid(t, controller, "Untainted", "another physical device")
	expectRuleWrites(t, controller, "patch 201 NoSchedule", "delete 200")
}

// An operator's word, four ways. The device is still reported bad: without the word it would stay tainted, and be tainted anew.
func TestAnOperatorsWordEndsTheTaintForThisIncident(t *testing.T) {
	for name, test := range map[string]struct {
		says func(*testing.T, rack, string)
		ours bool // it is we who remove the rule
	}{
		"an annotation on the rule": {func(t *testing.T, r rack, rule string) {
			patchRule(t, r.cp, rule, `{"metadata":{"annotations":{"`+acknowledge+`":"fan replaced"}}}`)
		}, true},
		"an annotation on the node": {func(t *testing.T, r rack, _ string) {
			patchNode(t, r.cp, r.node.Name, `{"metadata":{"annotations":{"`+acknowledge+`":"`+time.Now().Add(time.Second).UTC().Format(time.RFC3339)+`"}}}`)
		}, true},
		"the rule's removal": {func(t *testing.T, r rack, rule string) {
			must(t, r.cp.Client.ResourceV1().DeviceTaintRules().Delete(t.Context(), rule, metav1.DeleteOptions{}))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRack(t, cluster, 2)
			sick, device := r.holder(t)
			controller := r.start(t, dhc.Policy{NoEvict: true, Recover: "{healthyFor: 1s, hold: 24h}"})
			r.breaks(device)
			rule := r.awaitRule(t, device, "NoSchedule")
			controller.AwaitVerdict(t, r.node.Name, "Tainted")
			test.says(t, r, rule.Name)
			r.awaitNoRule(t, 10*time.Second)
			r.awaitSaid(t, controller, "Acknowledged", "an operator vouches for the device")
			story.AwaitEvent(t, cluster, "default", r.node.Name, "Acknowledged")
			r.staysWithoutRule(t)
			want := []string{"patch 201 NoSchedule"}
			if test.ours {
				want = append(want, "delete 200")
			}
			expectRuleWrites(t, controller, want...)
			story.ExpectUntouched(t, controller, sick)
			// It was healthy in between: the next break is another incident, about which nobody has said anything.
			r.heals(device)
			realcluster.Eventually(t, 15*time.Second, "the incident is over", func() error {
				for _, verdict := range controller.Verdicts(t) {
					if verdict.Reason == "Acknowledged" {
						return fmt.Errorf("%+v", verdict)
					}
				}
				return nil
			})
			r.breaks(device)
			if again := r.awaitRule(t, device, "NoSchedule"); again.UID == rule.UID {
				t.Error("it is the same rule")
			}
		})
	}
}

// One device: its Pod is evicted, waits for the end of the hold, gets the same device again, and shows that it is still bad.
func TestAfterTheHoldTheDeviceIsOnProbationAndARelapseIsHeldTwiceAsLong(t *testing.T) {
	r := newRack(t, cluster, 1)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{Full: "{wait: 0s}", Recover: "{hold: 4s, healthyFor: 1h}"})
	r.breaks(device)
	first := r.awaitRule(t, device, "NoSchedule")
	// Nobody who holds it may call it well, or that would be evidence.
	story.AwaitGone(t, cluster, sick)
	r.heals(device)
	if event := story.AwaitEvent(t, cluster, "default", r.node.Name, "Untainted"); !strings.Contains(event.Note, "held for 4 s (incident 1)") {
		t.Errorf("the Event says %q", event.Note)
	}
	story.AwaitEvent(t, cluster, "default", r.node.Name, "OnProbation")
	workload.AwaitRunning(t, cluster, r.namespace, "train", 1)
	r.breaks(device)
	second := r.awaitNextRule(t, device, first)
	if held := second.CreationTimestamp.Sub(first.CreationTimestamp.Time); held < 4*time.Second {
		t.Errorf("it was held for %s", held)
	}
	if second.Annotations[incidents] != "2" {
		t.Errorf("the second rule: %s, %v", second.UID, second.Annotations)
	}
	// I15: it is not evicted a second time for the same device, so it is still there and says what it sees.
	pods := workload.AwaitRunning(t, cluster, r.namespace, "train", 1)
	if deviceOf(pods[0]) != device || pods[0].UID == sick.UID {
		t.Errorf("%s runs on %s", pods[0].Name, deviceOf(pods[0]))
	}
	quiet := time.Now()
	must(t, cluster.Client.CoreV1().Pods(r.namespace).Delete(t.Context(), pods[0].Name, metav1.DeleteOptions{}))
	r.heals(device)
	r.awaitSaid(t, controller, "Tainted", "held for 8 s (incident 2)")
	r.awaitNoRule(t, 20*time.Second)
	if held := time.Since(quiet); held < 8*time.Second {
		t.Errorf("the second time it was held for %s", held)
	}
	workload.AwaitRunning(t, cluster, r.namespace, "train", 1)
	r.staysWithoutRule(t)
	expectRuleWrites(t, controller, "patch 201 NoSchedule", "delete 200", "patch 201 NoSchedule", "delete 200")
}

func TestADeviceThatFlapsStaysTaintedAndEachBreakCounts(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{NoEvict: true, Recover: "{healthyFor: 8s, hold: 24h, quarantineAbove: 2}"})
	r.breaks(device)
	rule := r.awaitRule(t, device, "NoSchedule")
	for count := 2; count <= 3; count++ {
		time.Sleep(9 * time.Second) // a break within healthyFor of the one before is the same
		r.heals(device)
		r.awaitSaid(t, controller, "Tainted", "reports Healthy, and must for 8 s")
		r.breaks(device)
		realcluster.Eventually(t, 10*time.Second, fmt.Sprint("the rule knows of incident ", count), func() error {
			now, err := cluster.Client.ResourceV1().DeviceTaintRules().Get(t.Context(), rule.Name, metav1.GetOptions{})
			if err == nil && (now.UID != rule.UID || now.Annotations[incidents] != fmt.Sprint(count)) {
				err = fmt.Errorf("%s %v", now.UID, now.Annotations)
			}
			return err
		})
	}
	controller.AwaitVerdict(t, r.node.Name, "Quarantined")
	r.heals(device)
	r.awaitSaid(t, controller, "Tainted", "quarantined until an operator acknowledges it")
	expectRuleWrites(t, controller, "patch 201 NoSchedule", "patch 200 NoSchedule", "patch 200 NoSchedule")
	story.ExpectUntouched(t, controller, sick)
}
