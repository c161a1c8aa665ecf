package controller

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

const (
	manager = "device-health-controller"

	needsRepair = "example.com/NodeNeedsRepair"
	taintKey    = "device-health.io/unhealthy"
	state       = "device-health-incidents"
	earlier     = "device-health-state"
	status      = "device-health-status"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func taintRule(t *testing.T, name string, labels map[string]string, finalizers ...string) {
	t.Helper()
	driver := "uninstall.example.com"
	rules := cluster.Client.ResourceV1().DeviceTaintRules()
	_, err := rules.Create(t.Context(), &resourcev1.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Finalizers: finalizers},
		Spec: resourcev1.DeviceTaintRuleSpec{DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: &driver, Pool: &name, Device: &name},
			Taint: resourcev1.DeviceTaint{Key: taintKey, Value: "Unhealthy", Effect: resourcev1.DeviceTaintEffectNoSchedule}},
	}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { _ = rules.Delete(context.Background(), name, metav1.DeleteOptions{}) })
}

// applyCondition writes a Pod's condition as somebody else.
func applyCondition(t *testing.T, pod corev1.Pod, kind string) {
	t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":%q},"status":{"conditions":[{"type":%q,"status":"True"}]}}`,
		pod.Name, pod.Namespace, kind)
	_, err := cluster.Client.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.ApplyPatchType, []byte(body),
		metav1.PatchOptions{FieldManager: "witness"}, "status")
	must(t, err)
}

// applyToNode writes a condition of a node under this name.
func applyToNode(t *testing.T, node, owner, kind string) {
	t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q},"status":{"conditions":[{"type":%q,"status":"True","reason":"DeviceHealthHandedOver"}]}}`, node, kind)
	_, err := cluster.Client.CoreV1().Nodes().Patch(t.Context(), node, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: owner}, "status")
	must(t, err)
}

// versions of everything that the test made; a dry run must leave them as they are. Nodes have heartbeats, so theirs are their taints.
func versions(t *testing.T, namespace, node string, rules []string) (all []string) {
	t.Helper()
	add := func(object metav1.Object, err error) {
		t.Helper()
		must(t, err)
		all = append(all, object.GetName()+" "+object.GetResourceVersion())
	}
	for _, name := range rules {
		add(cluster.Client.ResourceV1().DeviceTaintRules().Get(t.Context(), name, metav1.GetOptions{}))
	}
	add(cluster.Client.BatchV1().Jobs(namespace).Get(t.Context(), "train", metav1.GetOptions{}))
	for _, name := range []string{state, earlier, status} {
		add(cluster.Client.CoreV1().ConfigMaps(dhc.Namespace).Get(t.Context(), name, metav1.GetOptions{}))
	}
	add(cluster.Client.CoordinationV1().Leases(dhc.Namespace).Get(t.Context(), manager, metav1.GetOptions{}))
	for _, pod := range workload.Pods(t, cluster, namespace, "infer") {
		all = append(all, fmt.Sprint(pod.Name, len(pod.Status.Conditions)))
	}
	now, err := cluster.Client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	must(t, err)
	return append(all, fmt.Sprint(now.Spec.Taints))
}

var labelled = map[string]string{"app.kubernetes.io/managed-by": manager}

// besideALeader does something while somebody renews the Lease.
func besideALeader(t *testing.T, namespace string, do func()) {
	t.Helper()
	done, renewing := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(renewing)
		for {
			select {
			case <-done:
				return
			case <-time.After(300 * time.Millisecond):
				// A clock that is years off: nobody may judge by it.
				patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().AddDate(-3, 0, 0).UTC().Format("2006-01-02T15:04:05.000000Z"))
				_, _ = cluster.Client.CoordinationV1().Leases(namespace).Patch(context.Background(), manager, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			}
		}
	}()
	do()
	close(done)
	<-renewing
}

func lease(t *testing.T, namespace string, renewed time.Time) {
	t.Helper()
	holder, seconds, at := "somebody", int32(15), metav1.NewMicroTime(renewed)
	leases := cluster.Client.CoordinationV1().Leases(namespace)
	_ = leases.Delete(t.Context(), manager, metav1.DeleteOptions{})
	_, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: manager, Labels: labelled},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &at}}, metav1.CreateOptions{})
	must(t, err)
}

func expectLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

func TestUninstallRemovesEveryTraceOfOursAndOnlyOurs(t *testing.T) {
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	sick, neighbour := story.Holder(t, pods, "gpu-0"), story.Holder(t, pods, "gpu-1")
	t.Run("a controller leaves a condition behind", func(t *testing.T) {
		story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, NoEvict: true}.Text()})
		node.Break(t, gpu, "gpu-0")
		story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
	})
	applyCondition(t, sick, "example.com/Checked")
	applyCondition(t, neighbour, story.Condition)

	taintRule(t, "dhc-ours", map[string]string{"app.kubernetes.io/managed-by": manager})
	taintRule(t, "dhc-without-label", nil)
	taintRule(t, "by-hand", map[string]string{"app.kubernetes.io/managed-by": manager})
	rules := []string{"dhc-ours", "dhc-without-label", "by-hand"}
	taints := `{"spec":{"taints":[{"key":"example.com/a","effect":"PreferNoSchedule"},{"key":"` + taintKey +
		`","value":"Unhealthy","effect":"NoSchedule"},{"key":"example.com/b","value":"x","effect":"PreferNoSchedule"}]}}`
	_, err := cluster.Client.CoreV1().Nodes().Patch(t.Context(), node.Name, types.MergePatchType, []byte(taints), metav1.PatchOptions{})
	must(t, err)

	suspended := true
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "train", Annotations: map[string]string{"device-health.io/opt-out": "true", "example.com/x": "y"}},
		Spec: batchv1.JobSpec{Suspend: &suspended, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: "registry.test/pause:1"}}}}}}
	jobs := cluster.Client.BatchV1().Jobs(namespace)
	_, err = jobs.Create(t.Context(), job, metav1.CreateOptions{})
	must(t, err)
	credit := `{"metadata":{"annotations":{"device-health.io/retry-credits":"[]"}},"spec":{"backoffLimit":7}}`
	_, err = jobs.Patch(t.Context(), "train", types.MergePatchType, []byte(credit), metav1.PatchOptions{FieldManager: manager})
	must(t, err)
	for _, ns := range []string{dhc.Namespace, namespace} {
		// An earlier story's controller may have left one.
		for _, name := range []string{state, earlier, status} {
			if err := cluster.Client.CoreV1().ConfigMaps(ns).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil && !errors.IsNotFound(err) {
				t.Fatal(err)
			}
			_, err = cluster.Client.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelled}}, metav1.CreateOptions{})
			must(t, err)
		}
		lease(t, ns, time.Now().Add(-time.Minute))
	}

	applyToNode(t, node.Name, "device-health-hand-over", needsRepair)
	applyToNode(t, node.Name, "witness", "example.com/Theirs")
	arguments := []string{"uninstall", "--kubeconfig", filepath.Join(cluster.Folder, "admin.kubeconfig")}
	ours := []string{"DeviceTaintRule dhc-ours\n", "taint " + taintKey + " of Node " + node.Name + "\n",
		"condition " + needsRepair + " of Node " + node.Name + "\n",
		"condition " + story.Condition + " of Pod " + namespace + "/" + sick.Name + "\n", "annotation device-health.io/retry-credits of Job " + namespace + "/train\n",
		"ConfigMap " + dhc.Namespace + "/" + state + "\n", "ConfigMap " + dhc.Namespace + "/" + earlier + "\n", "ConfigMap " + dhc.Namespace + "/" + status + "\n", "Lease " + dhc.Namespace + "/" + manager + "\n"}
	// kube-controller-manager has written what it has to say: nothing else changes them from here on.
	realcluster.Eventually(t, 0, "the rules and the Job have a status", func() error {
		for _, rule := range rules {
			now, err := cluster.Client.ResourceV1().DeviceTaintRules().Get(t.Context(), rule, metav1.GetOptions{})
			if err != nil || len(now.Status.Conditions) == 0 {
				return fmt.Errorf("rule %s: %v", rule, err)
			}
		}
		now, err := jobs.Get(t.Context(), "train", metav1.GetOptions{})
		if err != nil || len(now.Status.Conditions) == 0 {
			return fmt.Errorf("the Job: %v", err)
		}
		return nil
	})
	before := versions(t, namespace, node.Name, rules)
	since := time.Now()
	code, out, problems := dhc.Command(t, append(arguments, "--dry-run")...)
	if code != 0 || !strings.HasPrefix(problems, "note: somebody holds the Lease; ") || strings.Count(problems, "\n") != 1 {
		t.Errorf("the dry run ended with code %d: %s", code, problems)
	}
	for _, line := range ours {
		expectLines(t, out, "would remove "+line)
	}
	expectLines(t, out, "left: DeviceTaintRule dhc-without-label ", "left: DeviceTaintRule by-hand ",
		"left: condition "+story.Condition+" of Pod "+namespace+"/"+neighbour.Name+": "+manager+" does not own it")
	wrote, err := cluster.Audit(since, func(e realcluster.AuditEvent) bool {
		return e.Writes() && e.User.Username == "test-administrator" && strings.HasPrefix(e.UserAgent, manager)
	})
	must(t, err)
	if len(wrote) > 0 {
		t.Errorf("the dry run wrote: %+v", wrote)
	}
	if after := versions(t, namespace, node.Name, rules); fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("the dry run changed\n%v to\n%v", before, after)
	}

	besideALeader(t, dhc.Namespace, func() { code, out, problems = dhc.Command(t, arguments...) })
	if code != 1 || !strings.Contains(problems, "error: a controller is running: somebody renewed the Lease") || strings.Contains(out, "\nremoved") {
		t.Errorf("beside a running controller it ended with code %d: %s%s", code, out, problems)
	}
	lease(t, dhc.Namespace, time.Now().Add(time.Hour))

	code, out, problems = dhc.Command(t, arguments...)
	if code != 0 || problems != "" {
		t.Errorf("it ended with code %d: %s", code, problems)
	}
	for _, line := range ours {
		expectLines(t, out, "\nremoved "+line)
	}
	expectOnlyOursGone(t, node, namespace, sick, neighbour)
	if story.NodeCondition(t, cluster, node.Name, needsRepair) != nil || story.NodeCondition(t, cluster, node.Name, "example.com/Theirs") == nil {
		t.Error("of the node's conditions ours stands, or another's is gone")
	}
	if code, out, problems = dhc.Command(t, arguments...); code != 0 || !strings.Contains(out, "\nremoved 0; not removed 0\n") {
		t.Errorf("the second time it ended with code %d: %s%s", code, out, problems)
	}
}

func expectOnlyOursGone(t *testing.T, node *fakenode.Node, namespace string, sick, neighbour corev1.Pod) {
	t.Helper()
	rules, err := cluster.Client.ResourceV1().DeviceTaintRules().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	var names []string
	for _, rule := range rules.Items {
		names = append(names, rule.Name)
	}
	if fmt.Sprint(names) != "[by-hand dhc-without-label]" {
		t.Errorf("the rules that are left: %v", names)
	}
	now, err := cluster.Client.CoreV1().Nodes().Get(t.Context(), node.Name, metav1.GetOptions{})
	must(t, err)
	if taints := now.Spec.Taints; len(taints) != 2 || taints[0].Key != "example.com/a" || taints[1].Key != "example.com/b" || taints[1].Value != "x" {
		t.Errorf("the taints that are left: %v", taints)
	}
	for _, test := range []struct {
		pod  corev1.Pod
		kind string
		want bool
	}{{sick, story.Condition, false}, {sick, "example.com/Checked", true}, {sick, "Ready", true}, {neighbour, story.Condition, true}} {
		pod, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), test.pod.Name, metav1.GetOptions{})
		must(t, err)
		if has := workload.Condition(pod, test.kind) != nil; has != test.want || pod.UID != test.pod.UID {
			t.Errorf("%s has condition %s: %v", pod.Name, test.kind, has)
		}
	}
	job, err := cluster.Client.BatchV1().Jobs(namespace).Get(t.Context(), "train", metav1.GetOptions{})
	must(t, err)
	if fmt.Sprint(job.Annotations) != "map[device-health.io/opt-out:true example.com/x:y]" || *job.Spec.BackoffLimit != 7 {
		t.Errorf("the Job has annotations %v and limit %d", job.Annotations, *job.Spec.BackoffLimit)
	}
	for ns, want := range map[string]bool{dhc.Namespace: false, namespace: true} {
		for _, name := range []string{state, earlier, status} {
			if _, err := cluster.Client.CoreV1().ConfigMaps(ns).Get(t.Context(), name, metav1.GetOptions{}); (err == nil) != want {
				t.Errorf("in %s: %v", ns, err)
			}
		}
		if _, err := cluster.Client.CoordinationV1().Leases(ns).Get(t.Context(), manager, metav1.GetOptions{}); (err == nil) != want {
			t.Errorf("in %s: %v", ns, err)
		}
	}
}

func TestUninstallNamesWhatItCannotRemoveAndFails(t *testing.T) {
	const finalizer = "example.com/hold"
	taintRule(t, "dhc-held", map[string]string{"app.kubernetes.io/managed-by": manager}, finalizer)
	t.Cleanup(func() {
		_, _ = cluster.Client.ResourceV1().DeviceTaintRules().Patch(context.Background(), "dhc-held", types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	code, out, problems := dhc.Command(t, "uninstall", "--kubeconfig", filepath.Join(cluster.Folder, "admin.kubeconfig"))
	if code != 1 || !strings.Contains(problems, "not removed: DeviceTaintRule dhc-held: it is there again") || !strings.Contains(out, "; not removed 1\n") {
		t.Errorf("with a finalizer it ended with code %d: %s%s", code, out, problems)
	}
	nobody := dhc.Kubeconfig(t, cluster, "default", "")
	code, out, problems = dhc.Command(t, "uninstall", "--kubeconfig", nobody)
	if code != 1 || !strings.HasPrefix(problems, "error: cannot tell whether a controller is running: ") || strings.Contains(out, "removed") {
		t.Errorf("without any right it ended with code %d: %s%s", code, out, problems)
	}
	code, out, problems = dhc.Command(t, "uninstall", "--dry-run", "--kubeconfig", nobody)
	if code != 1 || !strings.Contains(problems, "error: cannot look for Pods: ") || !strings.Contains(problems, "error: cannot look for Lease: ") {
		t.Errorf("without any right it ended with code %d: %s%s", code, out, problems)
	}
}
