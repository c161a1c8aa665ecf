package node

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/realnode"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

const incidents = "device-health.io/incidents"

// bench is a driver with devices of its own and the one Pod of a Deployment that holds one of them.
type bench struct {
	namespace, device string
	driver            *realnode.Driver
	sick              corev1.Pod
	controller        story.Run
}

// newBench has cards named by their attribute uuid if it is told a prefix for them, which no other story may use.
func newBench(t *testing.T, devices int, card string) bench {
	t.Helper()
	b := bench{namespace: cluster.Namespace(t), driver: node.NewDriver(t, realnode.DriverOptions{Devices: devices})}
	for i := range devices {
		if name := fmt.Sprint("gpu-", i); card != "" {
			b.driver.Set(t, name, realnode.DRADevice{Health: "Healthy", Attributes: map[string]string{"uuid": card + name}})
			b.driver.AwaitPublished(t, name)
		}
	}
	b.sick = workload.Deployment{Namespace: b.namespace, Name: "work", Replicas: 1,
		ClaimTemplate: workload.DeviceClass(t, cluster, b.namespace, b.driver.Name)}.Create(t, cluster)[0]
	b.device = draDeviceOf(t, b.sick)
	return b
}

// watched puts it under the shared controller, which acts at once; rest is what the policy says beyond that.
func (b bench) watched(t *testing.T, rest string) bench {
	t.Helper()
	b.controller = watchOver(t, b.namespace, policy{Rest: "after: 0s\ntaint: {}\n" + rest})
	return b
}

func (b bench) breaks(t *testing.T) {
	t.Helper()
	b.driver.Set(t, b.device, realnode.DRADevice{Health: "Unhealthy", Message: "Xid 79"})
}

func (b bench) heals(t *testing.T) {
	t.Helper()
	b.driver.Set(t, b.device, realnode.DRADevice{Health: "Healthy"})
}

// awaitSaid waits until the controller has said something of the driver's devices, be it past.
func (b bench) awaitSaid(t *testing.T, reason, words string) {
	t.Helper()
	b.controller.AwaitSays(t, `"msg":"verdict"`, `"reason":"`+reason+`"`, `"device":"`+b.driver.Name+"/", words)
}

// says is whether the controller says so now.
func (b bench) says(t *testing.T, reason, words string) bool {
	t.Helper()
	for _, v := range b.controller.Verdicts(t) {
		if v.Reason == reason && strings.HasPrefix(v.Device, b.driver.Name+"/") && strings.Contains(v.Message, words) {
			return true
		}
	}
	return false
}

// awaitSays waits until the controller says or no longer says something, which then lasts until the test does something about it.
func (b bench) awaitSays(t *testing.T, wanted bool, reason, words string) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, fmt.Sprintf("%s %q is said: %t", reason, words, wanted), func() error {
		if b.says(t, reason, words) != wanted {
			return fmt.Errorf("not so")
		}
		return nil
	})
}

// awaitRule waits until there is a rule, another one than before it if that is not nil.
func (b bench) awaitRule(t *testing.T, before *resourcev1.DeviceTaintRule) *resourcev1.DeviceTaintRule {
	t.Helper()
	var rule *resourcev1.DeviceTaintRule
	realcluster.Eventually(t, time.Minute, "there is a rule for "+b.device, func() error {
		rule = ruleOf(t, b.driver, b.device)
		if rule == nil || before != nil && rule.UID == before.UID {
			time.Sleep(200 * time.Millisecond) // each look is a process
			return fmt.Errorf("it is %+v", rule)
		}
		return nil
	})
	if effect := rule.Spec.Taint.Effect; effect != "NoSchedule" {
		t.Errorf("the rule's effect is %s", effect)
	}
	return rule
}

// awaitUntainted waits for the end of the taint, with these words, and says how long after a time it came.
func (b bench) awaitUntainted(t *testing.T, since time.Time, words string) (after time.Duration) {
	t.Helper()
	b.awaitSaid(t, "Untainted", words)
	after = time.Since(since)
	if rule := ruleOf(t, b.driver, b.device); rule != nil {
		t.Errorf("the rule is still there: %+v", rule)
	}
	return after
}

// ruleWrites are the controller's writes of one rule that changed something; those that crossed another's are answered 409 and sent again.
func ruleWrites(t *testing.T, controller story.Run, rule string) (lines []string) {
	t.Helper()
	for _, e := range controller.Writes(t) {
		if e.ObjectRef.Resource == "devicetaintrules" && e.ObjectRef.Name == rule && e.Response.Code < http.StatusBadRequest {
			lines = append(lines, fmt.Sprint(e.Verb, " ", e.Response.Code))
		}
	}
	return lines
}

// expectRuleWrites says what was written, and no more. A record may come a moment after its effect; what is too much does not go away.
func expectRuleWrites(t *testing.T, controller story.Run, rule string, want ...string) {
	t.Helper()
	realcluster.Eventually(t, 0, "the writes of "+rule, func() error {
		if got := ruleWrites(t, controller, rule); !slices.Equal(got, want) {
			time.Sleep(time.Second) // the audit log is long
			return fmt.Errorf("they are %q, not %q", got, want)
		}
		return nil
	})
}

func TestADRADeviceIsUntaintedWhenItsDriversOwnTaintHasBeenGoneForHealthyFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, "").watched(t, "evict: {after: 0s}\nrecover: {healthyFor: 20s, hold: 24h}")
	b.breaks(t)
	rule := b.awaitRule(t, nil)
	replacement := story.AwaitReplacement(t, cluster, b.sick, 1)[0]
	b.awaitSays(t, true, "Tainted", "nobody reports on it")
	b.driver.Set(t, b.device, realnode.DRADevice{Health: "Unhealthy", Taints: []resourcev1.DeviceTaint{{Key: "driver.example.com/broken", Effect: "NoSchedule"}}})
	b.awaitSays(t, true, "Tainted", "it is still reported bad")
	gone := time.Now()
	b.heals(t)
	if took := b.awaitUntainted(t, gone, "its driver's own taint has been gone for 20 s"); took < 20*time.Second {
		t.Errorf("it was untainted after %s", took)
	}
	expectRuleWrites(t, b.controller, rule.Name, "patch 201", "delete 200")
	story.ExpectUntouched(t, b.controller, replacement)
}

func TestADRADeviceIsUntaintedWhenItsHolderHasReportedHealthyForHealthyFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, "").watched(t, "recover: {healthyFor: 20s, hold: 24h}")
	b.breaks(t)
	rule := b.awaitRule(t, nil)
	healed := time.Now()
	b.heals(t)
	if took := b.awaitUntainted(t, healed, "a pod that holds it has reported Healthy for 20 s"); took < 20*time.Second {
		t.Errorf("it was untainted after %s", took)
	}
	expectRuleWrites(t, b.controller, rule.Name, "patch 201", "delete 200")
	story.ExpectUntouched(t, b.controller, b.sick)
}

func TestAnotherCardInTheSamePlaceOfARealNodeStartsClean(t *testing.T) {
	t.Parallel()
	card := realcluster.Unique("GPU") + "-"
	b := newBench(t, 2, card).watched(t, "evict: {after: 0s}\nrecover: {healthyFor: 1h, hold: 24h}")
	b.driver.Set(t, b.device, realnode.DRADevice{Health: "Unhealthy", Message: "Xid 79", Attributes: map[string]string{"uuid": card + b.device}})
	rule := b.awaitRule(t, nil)
	if identity := rule.Annotations["device-health.io/identity"]; identity != card+b.device {
		t.Errorf("the rule is about the card %q, not %s", identity, card+b.device)
	}
	story.AwaitReplacement(t, cluster, b.sick, 1)
	b.driver.Set(t, b.device, realnode.DRADevice{Health: "Healthy", Attributes: map[string]string{"uuid": card + "new"}})
	b.awaitUntainted(t, time.Now(), "another physical device sits in its place")
	expectRuleWrites(t, b.controller, rule.Name, "patch 201", "delete 200")
	story.ExpectEvictedOnce(t, b.controller, b.sick)
}

// One device: its Pod is evicted, waits for the end of the hold, gets the same device again, and shows that it is still bad.
func TestARealHoldEndsInProbationAndARelapseIsHeldTwiceAsLong(t *testing.T) {
	t.Parallel()
	b := newBench(t, 1, "").watched(t, "evict: {after: 0s, whenNoReplacement: {wait: 0s}}\nrecover: {healthyFor: 1h, hold: 15s}")
	b.breaks(t)
	first := b.awaitRule(t, nil)
	story.AwaitGone(t, cluster, b.sick)
	gone := b.controller.EvictedAt(t, b.sick)
	b.heals(t) // so that the Pod that waits for it does not relapse yet
	if held := b.awaitUntainted(t, gone, "held for 15 s (incident 1) without evidence"); held < 15*time.Second {
		t.Errorf("it was held for %s", held)
	}
	b.awaitSaid(t, "OnProbation", "")
	again := workload.AwaitRunning(t, cluster, b.namespace, "work", 1)[0]
	awaitHealth(t, again, "Healthy")
	b.breaks(t)
	second := b.awaitRule(t, first)
	if second.Annotations[incidents] != "2" {
		t.Errorf("the relapse is not the second incident: %v", second.Annotations)
	}
	awaitHealth(t, again, "Unhealthy")
	story.ExpectUntouched(t, b.controller, again) // nobody is evicted twice for the same device
	quiet := time.Now()
	if err := cluster.Client.CoreV1().Pods(b.namespace).Delete(t.Context(), again.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.heals(t)
	if held := b.awaitUntainted(t, quiet, "held for 30 s (incident 2) without evidence"); held < 30*time.Second {
		t.Errorf("the second time it was held for %s", held)
	}
	workload.AwaitRunning(t, cluster, b.namespace, "work", 1)
	expectRuleWrites(t, b.controller, first.Name, "patch 201", "delete 200", "patch 201", "delete 200")
}

func TestAFlappingDRADeviceHasOneRuleThroughout(t *testing.T) {
	t.Parallel()
	// healthyFor is longer than any Healthy of this story, however late it comes and is seen.
	b := newBench(t, 2, "").watched(t, "recover: {healthyFor: 10m, hold: 24h}")
	b.breaks(t)
	rule := b.awaitRule(t, nil)
	for range 3 {
		said := time.Now()
		b.heals(t)
		awaitHealth(t, b.sick, "Healthy")
		t.Logf("the pod's status says Healthy %s after the driver", time.Since(said))
		b.awaitSays(t, true, "Tainted", "a pod that holds it reports Healthy, and must for 10 min")
		b.breaks(t)
		awaitHealth(t, b.sick, "Unhealthy")
		b.awaitSays(t, true, "Tainted", "it is still reported bad")
	}
	now := ruleOf(t, b.driver, b.device)
	if now == nil || now.UID != rule.UID || now.Generation != rule.Generation || now.Annotations[incidents] != "1" {
		t.Errorf("the rule was %+v and is %+v", rule, now)
	}
	expectRuleWrites(t, b.controller, rule.Name, "patch 201")
	story.ExpectUntouched(t, b.controller, b.sick)
}
