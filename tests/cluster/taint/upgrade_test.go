package taint

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
)

// stateOf010 is what 0.1.0 writes down of one device, with these members beside those that it always writes.
func stateOf010(r rack, device string, began time.Time, members string) string {
	at := began.UTC().Format(time.RFC3339)
	return fmt.Sprintf(`{"version":1,"devices":[{"source":"dra","scope":%q,"place":%q,"device":%q,"policy":"test","incidents":1,"penalty":1.0,"penaltyAt":%q,%s,`+
		`"history":[{"at":%q,"reason":"Xid 79"}]}]}`, r.driver, r.node.Name, device, at, members, at)
}

// From 0.1.0, back and here again, with its part played: its incident goes on under its rule, what it has ended since is over, and nobody is evicted twice.
func TestWhat010HasWrittenIsTakenOverOnceAndAgainAfterARollback(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	settings, began := r.settings(t, dhc.Policy{Recover: "{hold: 24h}"}), time.Now()
	first := story.Start(t, cluster, settings)
	r.breaks(device)
	rule := r.awaitRule(t, device, "NoSchedule")
	story.AwaitReplacement(t, cluster, sick, 1)
	story.AwaitState(t, cluster, string(rule.UID))
	first.Kill()

	// As if 0.1.0 had led until now.
	forget(t, cluster)
	maps := cluster.Client.CoreV1().ConfigMaps(dhc.Namespace)
	at := began.UTC().Format(time.RFC3339)
	open := fmt.Sprintf(`"open":true,"since":%q,"openedAt":%q,"wasTainted":true,"rule":%q`, at, at, rule.UID)
	earlier, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: dhc.EarlierState},
		Data: map[string]string{"devices.json": stateOf010(r, device, began, open)}}, metav1.CreateOptions{})
	must(t, err)
	second := again(t, settings, began)
	story.AwaitState(t, cluster, fmt.Sprintf(`"imported":"%s/%s"`, earlier.UID, earlier.ResourceVersion))
	r.awaitSaid(t, second, "Tainted", "(incident 1)")
	r.staysAs(t, rule)
	story.ExpectEvictedOnce(t, second, sick)
	second.Kill()

	// A rollback: 0.1.0 finds evidence of recovery, and removes its rule.
	closed := fmt.Sprintf(`"wasTainted":true,"closedAt":%q,"closedBecause":"a pod that holds it has reported Healthy"`, time.Now().UTC().Format(time.RFC3339))
	must(t, cluster.Client.ResourceV1().DeviceTaintRules().Delete(t.Context(), rule.Name, metav1.DeleteOptions{}))
	r.heals(device)
	body := fmt.Sprintf(`{"data":{"devices.json":%q}}`, stateOf010(r, device, began, closed))
	earlier, err = maps.Patch(t.Context(), dhc.EarlierState, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "device-health-controller"})
	must(t, err)
	third := again(t, settings, began)
	story.AwaitState(t, cluster, `"phase":"Ended"`)
	realcluster.Never(t, 2*time.Second, "no rule is made for what is over", func() error {
		if rules := r.rules(t.Context(), t); len(rules) > 0 {
			return fmt.Errorf("there are %+v", rules)
		}
		return nil
	})
	story.ExpectEvictedOnce(t, third, sick)
	now, err := maps.Get(t.Context(), dhc.EarlierState, metav1.GetOptions{})
	must(t, err)
	if now.ResourceVersion != earlier.ResourceVersion {
		t.Errorf("0.1.0's ConfigMap was written: %s", now.Data["devices.json"])
	}
}

// The rule that 0.1.0 made has a name that says nothing and no labels: it goes on, and says once what it stands for.
func TestARuleOf010IsDescribedInPlace(t *testing.T) {
	r := newRack(t, cluster, 2)
	_, device := r.holder(t)
	settings, began := r.settings(t, dhc.Policy{NoEvict: true, Recover: "{hold: 24h}"}), time.Now()
	first := story.Start(t, cluster, settings)
	r.breaks(device)
	today := r.awaitRule(t, device, "NoSchedule")
	first.Kill()

	// As 0.1.0 would have it: the same hash without the words before it, applied under the same field manager.
	rules := cluster.Client.ResourceV1().DeviceTaintRules()
	must(t, rules.Delete(t.Context(), today.Name, metav1.DeleteOptions{}))
	name := "dhc" + today.Name[strings.LastIndexByte(today.Name, '-'):]
	body := fmt.Sprintf(`{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{"name":%q,"labels":{"app.kubernetes.io/managed-by":"device-health-controller"},`+
		`"annotations":{"device-health.io/effect":"NoSchedule","device-health.io/policy":"test","device-health.io/since":%q,"device-health.io/incidents":"1"}},`+
		`"spec":{"deviceSelector":{"driver":%q,"pool":%q,"device":%q},"taint":{"key":%q,"value":"Unhealthy","effect":"NoSchedule"}}}`,
		name, began.UTC().Format(time.RFC3339), r.driver, r.node.Name, device, key)
	old, err := rules.Patch(t.Context(), name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "device-health-controller"})
	must(t, err)
	forget(t, cluster)

	second := story.Start(t, cluster, settings)
	realcluster.Eventually(t, 30*time.Second, "the rule says what it stands for", func() error {
		found := r.rules(t.Context(), t)
		if len(found) != 1 || found[0].UID != old.UID || found[0].Name != name || found[0].Spec.Taint.Effect != "NoSchedule" {
			return fmt.Errorf("there are %+v", found)
		}
		for label, want := range map[string]string{"node": r.node.Name, "driver": r.driver, "device": device, "policy": "test"} {
			if got := found[0].Labels["device-health.io/"+label]; got != want {
				return fmt.Errorf("its label %s is %q, not %q", label, got, want)
			}
		}
		if said := found[0].Annotations["device-health.io/said"]; said != "Xid 79" {
			return fmt.Errorf("it says %q", said)
		}
		return nil
	})
	realcluster.Never(t, 3*time.Second, "it is written once", func() error {
		if lines := ruleWrites(t, second); len(lines) != 1 || lines[0] != "patch 200 NoSchedule" {
			return fmt.Errorf("%q", lines)
		}
		return nil
	})
}
