package standin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"
)

const conditionOf = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"uid":%q},"status":{"conditions":[{"type":"device-health.io/DeviceUnhealthy","status":"True","message":"m"}]}}`

func TestAPodIsMarkedOnceAndEvictedOnce(t *testing.T) {
	s, c := started(t, "application/json")
	p, version := first(t, c)
	w, err := c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
	must(err)
	s.Fail(1, 0)
	if e := <-w.ResultChan(); e.Type != "MODIFIED" || s.probes[string(p.UID)] == nil {
		t.Fatal(e)
	}
	apply, force := fmt.Appendf(nil, conditionOf, p.Name, p.UID), true
	for range 2 { // the second changes nothing and must not make an event
		q, err := c.CoreV1().Pods(p.Namespace).Patch(t.Context(), p.Name, types.ApplyPatchType, apply, metav1.PatchOptions{FieldManager: "x", Force: &force}, "status")
		if err != nil || len(q.Status.Conditions) != len(p.Status.Conditions)+1 || q.Spec.NodeName != p.Spec.NodeName {
			t.Fatal(err, q)
		}
	}
	<-w.ResultChan()
	if err := evict(t, c, p, "other"); !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	must(evict(t, c, p, p.UID))
	if e := <-w.ResultChan(); e.Type != "MODIFIED" {
		t.Fatal(e)
	}
	if e := <-w.ResultChan(); e.Type != "DELETED" {
		t.Fatal(e)
	}
	if err := evict(t, c, p, p.UID); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if got := s.Stats().Evictions; got["201"] != 1 || got["404"] != 1 || got["409"] != 1 {
		t.Fatal(got)
	}
}

func TestAnEvictionIsJudgedByWhatItsPodIs(t *testing.T) {
	s, c := started(t, "application/json")
	s.linger = 1 << 40 // it stays
	p, _ := first(t, c)
	must(evict(t, c, p, p.UID))
	must(evict(t, c, p, p.UID))
	if got := s.Stats().Evictions; got["201 healthy"] != 1 || got["201 duplicate"] != 1 {
		t.Fatal(got)
	}
	if n, _ := s.Stats().Writes(); n != 2 {
		t.Fatal(s.Stats().Counts)
	}
}

func TestPatchesDoWhatAControllerExpects(t *testing.T) {
	_, c := started(t, "application/json")
	ctx := t.Context()
	nodes, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	must(err)
	node := nodes.Items[0].Name
	stale := `[{"op":"test","path":"/metadata/resourceVersion","value":"1"},{"op":"add","path":"/spec/taints","value":[]}]`
	if _, err := c.CoreV1().Nodes().Patch(ctx, node, types.JSONPatchType, []byte(stale), metav1.PatchOptions{}); err == nil {
		t.Fatal("a failed test operation was accepted")
	}
	taint := `[{"op":"add","path":"/spec/taints","value":[{"key":"device-health.io/unhealthy","effect":"NoSchedule"}]}]`
	if n, err := c.CoreV1().Nodes().Patch(ctx, node, types.JSONPatchType, []byte(taint), metav1.PatchOptions{}); err != nil || len(n.Spec.Taints) != 1 {
		t.Fatal(err)
	}
	jobs, err := c.BatchV1().Jobs("").List(ctx, metav1.ListOptions{Limit: 1})
	must(err)
	j := jobs.Items[0]
	if j, err := c.BatchV1().Jobs(j.Namespace).Patch(ctx, j.Name, types.MergePatchType, []byte(`{"spec":{"backoffLimit":7}}`), metav1.PatchOptions{}); err != nil || *j.Spec.BackoffLimit != 7 {
		t.Fatal(err)
	}
	rule := "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: dhc-1}\nspec: {taint: {key: k, effect: NoSchedule}}\n"
	if r, err := c.ResourceV1().DeviceTaintRules().Patch(ctx, "dhc-1", types.ApplyPatchType, []byte(rule), metav1.PatchOptions{FieldManager: "x"}); err != nil || r.UID == "" {
		t.Fatal(err)
	}
}

func TestALeaseIsTakenOnlyAtItsLatestVersion(t *testing.T) {
	_, c := started(t, "application/json")
	leases := c.CoordinationV1().Leases("team-00")
	lease, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "lead"}}, metav1.CreateOptions{})
	must(err)
	me, you := "me", "you"
	lease.Spec.HolderIdentity = &me
	if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	lease.Spec.HolderIdentity = &you // with the resourceVersion of before
	if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
}

func TestOneConditionIsAppliedTheShortWayAsTheLongWay(t *testing.T) {
	s, c := started(t, "application/json")
	p, _ := first(t, c)
	apply := fmt.Appendf(nil, conditionOf, p.Name, p.UID)
	o := s.pods().objs[p.Namespace+"/"+p.Name]
	long, err := merge(&call{r: &http.Request{Header: http.Header{"Content-Type": {applyType}}}, k: s.pods()}, o.text(), apply)
	must(err)
	q, err := c.CoreV1().Pods(p.Namespace).Patch(t.Context(), p.Name, types.ApplyPatchType, apply, metav1.PatchOptions{FieldManager: "x"}, "status")
	must(err)
	var want corev1.Pod
	must(json.Unmarshal(long, &want))
	want.ResourceVersion, want.Kind, want.APIVersion = q.ResourceVersion, q.Kind, q.APIVersion
	want.ManagedFields, q.ManagedFields = nil, nil // the same JSON in another order
	if !apiequality.Semantic.DeepEqual(&want, q) {
		t.Fatal(diff.Diff(&want, q))
	}
}
