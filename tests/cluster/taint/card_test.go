package taint

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// shareCounters publishes the node's devices anew: these draw on one set of counters, as partitions of one card do.
func (r rack) shareCounters(t *testing.T, devices ...string) {
	t.Helper()
	slices := r.cp.Client.ResourceV1().ResourceSlices()
	published, err := slices.Get(t.Context(), r.node.Name+"-"+r.driver, metav1.GetOptions{})
	must(t, err)
	pool := published.Spec.Pool
	pool.Generation, pool.ResourceSliceCount = pool.Generation+1, 2
	counters := func(memory string) map[string]resourcev1.Counter {
		return map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(memory)}}
	}
	card := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: published.Name + "-counters"},
		Spec: resourcev1.ResourceSliceSpec{Driver: r.driver, NodeName: &r.node.Name, Pool: pool,
			SharedCounters: []resourcev1.CounterSet{{Name: "card-a", Counters: counters("80Gi")}}},
	}
	_, err = slices.Create(t.Context(), card, metav1.CreateOptions{})
	must(t, err)
	published.Spec.Pool = pool
	for i := range published.Spec.Devices {
		device := &published.Spec.Devices[i]
		for _, name := range devices {
			if device.Name == name {
				device.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "card-a", Counters: counters("10Gi")}}
			}
		}
	}
	_, err = slices.Update(t.Context(), published, metav1.UpdateOptions{})
	must(t, err)
}

// others are the node's devices but for one.
func (r rack) others(device string) (names []string) {
	for i := range 4 {
		if name := fmt.Sprint("gpu-", i); name != device {
			names = append(names, name)
		}
	}
	return names
}

// awaitTainted waits until the rules are exactly those of these devices.
func (r rack) awaitTainted(t *testing.T, devices ...string) map[string]resourcev1.DeviceTaintRule {
	t.Helper()
	found := map[string]resourcev1.DeviceTaintRule{}
	realcluster.Eventually(t, 20*time.Second, fmt.Sprint("rules of ", devices), func() error {
		clear(found)
		for _, rule := range r.rules(t.Context(), t) {
			found[*rule.Spec.DeviceSelector.Device] = rule
		}
		for _, device := range devices {
			if _, ok := found[device]; !ok || len(found) != len(devices) {
				return fmt.Errorf("there are %+v", found)
			}
		}
		return nil
	})
	return found
}

// The API server takes what a driver publishes of a card and its partitions, the rules for all of them, and the scheduler heeds them.
func TestNoNewPodGetsAnotherPartOfABadCard(t *testing.T) {
	r := newRack(t, cluster, 4)
	must(t, r.node.PublishSlice(t.Context(), r.driver, nil))
	sick, bad := r.holder(t)
	others := r.others(bad)
	part, alone := others[0], others[1:]
	r.shareCounters(t, bad, part)
	controller := r.start(t, dhc.Policy{Recover: "{healthyFor: 1s, hold: 24h}"})
	r.breaks(bad)
	rules := r.awaitTainted(t, bad, part)
	if same := rules[part].Annotations["device-health.io/same-card-as"]; same != bad {
		t.Errorf("the rule of %s says that it is on the card of %q", part, same)
	}
	r.awaitSaid(t, controller, "Tainted", "and another rule off one more device of its card")
	// The replacement and one more Pod take the two devices of other cards; a third finds none.
	replacement := story.AwaitReplacement(t, r.cp, sick, 1)
	more := workload.Deployment{Namespace: r.namespace, Name: "more", Replicas: 1, ClaimTemplate: r.template}.Create(t, r.cp)
	for _, pod := range append(more, replacement...) {
		if device := deviceOf(pod); device != alone[0] && device != alone[1] {
			t.Errorf("%s runs on %s, beside the bad %s", pod.Name, device, bad)
		}
	}
	workload.Deployment{Namespace: r.namespace, Name: "waiting", Replicas: 1, ClaimTemplate: r.template}.CreateOnly(t, r.cp)
	realcluster.Never(t, 2*time.Second, "no Pod runs on the bad card", func() error {
		pods, err := r.cp.Client.CoreV1().Pods(r.namespace).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for _, pod := range pods.Items {
			if device := deviceOf(pod); pod.Status.Phase == corev1.PodRunning && (device == bad || device == part) && pod.UID != sick.UID {
				return fmt.Errorf("%s runs on %s", pod.Name, device)
			}
		}
		return nil
	})
	// Before the word: the Pod that waits takes the first device that is free again, and may take this one.
	r.heals(bad)
	patchRule(t, r.cp, rules[bad].Name, `{"metadata":{"annotations":{"`+acknowledge+`":"reseated"}}}`)
	r.awaitNoRule(t, 10*time.Second)
}

// The API server takes the word on a rule that another device's incident asks for; that device alone is handed out again.
func TestAWordOnTheRuleOfAnotherDeviceOfABadCardLetsThatOneGo(t *testing.T) {
	r := newRack(t, cluster, 4)
	must(t, r.node.PublishSlice(t.Context(), r.driver, nil))
	_, bad := r.holder(t)
	others := r.others(bad)
	first, second := others[0], others[1]
	r.shareCounters(t, bad, first, second)
	controller := r.start(t, dhc.Policy{NoEvict: true, Recover: "{healthyFor: 1s, hold: 24h}"})
	r.breaks(bad)
	rules := r.awaitTainted(t, bad, first, second)
	patchRule(t, r.cp, rules[first].Name, `{"metadata":{"annotations":{"`+acknowledge+`":"tested apart"}}}`)
	r.awaitTainted(t, bad, second)
	realcluster.Never(t, 2*time.Second, "the rule is not made again", func() error {
		if rules := r.rules(t.Context(), t); len(rules) != 2 {
			return fmt.Errorf("there are %+v", rules)
		}
		return nil
	})
	controller.Kill()
	r.start(t, dhc.Policy{NoEvict: true, Recover: "{healthyFor: 1s, hold: 24h}"})
	realcluster.Never(t, 4*time.Second, "nor by the process after it", func() error {
		if rules := r.rules(t.Context(), t); len(rules) != 2 {
			return fmt.Errorf("there are %+v", rules)
		}
		return nil
	})
}
