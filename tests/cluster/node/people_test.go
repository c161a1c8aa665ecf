package node

import (
	"fmt"
	"testing"
	"time"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
)

func kubectl(t *testing.T, input string, arguments ...string) {
	t.Helper()
	if _, err := cluster.Kubectl(input, arguments...); err != nil {
		t.Fatal(err)
	}
}

// staysWithoutRule watches for a while that none is made.
func (b bench) staysWithoutRule(t *testing.T) {
	t.Helper()
	realcluster.Never(t, 5*time.Second, "no rule is made", func() error {
		if rule := ruleOf(t, b.driver, b.device); rule != nil {
			return fmt.Errorf("there is %+v", rule)
		}
		time.Sleep(500 * time.Millisecond) // each look is a process
		return nil
	})
}

// awaitIncidentOver lets the device be well until the incident that an operator has acknowledged is over.
func (b bench) awaitIncidentOver(t *testing.T) {
	t.Helper()
	b.awaitSays(t, true, "Acknowledged", "an operator vouches for the device")
	b.heals(t)
	b.awaitSays(t, false, "Acknowledged", "")
}

// The device is still reported bad: without an operator's word it would stay tainted, and be tainted anew.
func TestAnOperatorsWordAboutARuleOfARealDeviceEndsItForThisIncident(t *testing.T) {
	t.Parallel()
	for name, person := range map[string]struct {
		says   func(t *testing.T, rule string)
		writes []string // of ours
	}{
		"an annotation on the rule": {func(t *testing.T, rule string) {
			kubectl(t, "", "annotate", "devicetaintrule", rule, "device-health.io/acknowledge=fan replaced")
		}, []string{"patch 201", "delete 200"}},
		"the rule's removal": {func(t *testing.T, rule string) {
			kubectl(t, "", "delete", "devicetaintrule", rule)
		}, []string{"patch 201"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, 2, "").watched(t, "recover: {healthyFor: 5s, hold: 24h}")
			b.breaks(t)
			rule := b.awaitRule(t, nil)
			b.awaitSaid(t, "Tainted", rule.Name)
			person.says(t, rule.Name)
			b.awaitSaid(t, "Acknowledged", "an operator vouches for the device")
			realcluster.Eventually(t, time.Minute, "the rule is gone", func() error {
				if now := ruleOf(t, b.driver, b.device); now != nil {
					return fmt.Errorf("it is %+v", now)
				}
				return nil
			})
			b.staysWithoutRule(t)
			expectRuleWrites(t, b.controller, rule.Name, person.writes...)
			story.ExpectUntouched(t, b.controller, b.sick)
			// The next break is another incident, about which nobody has said anything.
			b.awaitIncidentOver(t)
			b.breaks(t)
			b.awaitRule(t, rule)
			expectRuleWrites(t, b.controller, rule.Name, append(person.writes, "patch 201")...)
		})
	}
}

func TestARuleOfARealDeviceThatAPersonChangedIsLeftAsItIsEvenWhenTheDeviceIsWell(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, "").watched(t, "recover: {healthyFor: 5s, hold: 24h}")
	b.breaks(t)
	rule := b.awaitRule(t, nil)
	b.awaitSaid(t, "Tainted", rule.Name)
	kubectl(t, "", "patch", "devicetaintrule", rule.Name, "--type=merge", "-p", `{"spec":{"taint":{"effect":"None"}}}`)
	b.awaitSaid(t, "ChangedByOther", "its effect is None; it is left as it is")
	b.awaitIncidentOver(t)
	if now := ruleOf(t, b.driver, b.device); now == nil || now.UID != rule.UID || now.Spec.Taint.Effect != "None" {
		t.Errorf("the rule that an operator has changed is now %+v", now)
	}
	expectRuleWrites(t, b.controller, rule.Name, "patch 201")
	story.ExpectUntouched(t, b.controller, b.sick)
}

func TestSomebodyElsesRuleForARealDeviceIsEnough(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, "")
	theirs := realcluster.Unique("theirs")
	kubectl(t, fmt.Sprintf(`{"apiVersion":%q,"kind":"DeviceTaintRule","metadata":{"name":%q},"spec":{"deviceSelector":{"driver":%q,"pool":%q,"device":%q},
		"taint":{"key":"example.com/bad","effect":"NoSchedule"}}}`, rulesVersion(t), theirs, b.driver.Name, node.Name, b.device), "create", "--filename=-")
	t.Cleanup(func() { _, _ = cluster.Kubectl("", "delete", "devicetaintrule", "--ignore-not-found", theirs) })
	b = b.watched(t, "evict: {after: 0s}\nrecover: {healthyFor: 1h, hold: 24h}")
	b.breaks(t)
	b.awaitSaid(t, "TaintedByOther", theirs)
	replacement := story.AwaitReplacement(t, cluster, b.sick, 1)[0]
	if device := draDeviceOf(t, replacement); device == b.device {
		t.Errorf("the replacement is on %s again", device)
	}
	if rule := ruleOf(t, b.driver, b.device); rule == nil || rule.Name != theirs || rule.Generation != 1 {
		t.Errorf("there is %+v, not only %s as it was", rule, theirs)
	}
	// Its end is nobody's word about our incident: ours takes its place, the first that we write.
	deleted := time.Now()
	kubectl(t, "", "delete", "devicetaintrule", theirs)
	ours := b.awaitRule(t, nil)
	expectRuleWrites(t, b.controller, ours.Name, "patch 201")
	if made := ours.CreationTimestamp.Time; made.Before(deleted.Truncate(time.Second)) {
		t.Errorf("ours was made at %s, theirs deleted at %s", made, deleted)
	}
	story.ExpectEvictedOnce(t, b.controller, b.sick)
	story.ExpectUntouched(t, b.controller, replacement)
}

// rulesVersion is the API version in which this release serves DeviceTaintRules.
func rulesVersion(t *testing.T) string {
	t.Helper()
	groups, err := cluster.Client.Discovery().ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			if group.Name != "resource.k8s.io" {
				continue
			}
			list, err := cluster.Client.Discovery().ServerResourcesForGroupVersion(version.GroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			for _, resource := range list.APIResources {
				if resource.Name == "devicetaintrules" {
					return version.GroupVersion
				}
			}
		}
	}
	t.Fatal("no DeviceTaintRules are served")
	return ""
}
