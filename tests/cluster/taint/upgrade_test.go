package taint

import (
	"fmt"
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
