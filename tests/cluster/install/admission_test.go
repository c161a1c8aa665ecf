package install

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/workload"
)

const (
	taintKey  = "device-health.io/unhealthy"
	condition = "device-health.io/DeviceUnhealthy"
)

// everyRight gives our service account far more than manifests/ does: what is refused then is refused by the policy.
func everyRight(t *testing.T) kubernetes.Interface {
	t.Helper()
	name := realcluster.Unique("every-right")
	all := []string{"*"}
	_, err := cluster.Client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: all, Resources: all, Verbs: all}}}, metav1.CreateOptions{})
	fatal(t, err)
	_, err = cluster.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: dhc.Account, Namespace: dhc.Namespace}}}, metav1.CreateOptions{})
	fatal(t, err)
	t.Cleanup(func() {
		_, _ = cluster.Kubectl("", "delete", "clusterrolebinding,clusterrole", name)
	})
	token, err := cluster.Token(t.Context(), dhc.Namespace, dhc.Account)
	fatal(t, err)
	config := rest.AnonymousClientConfig(cluster.Admin)
	config.BearerToken, config.QPS = token, -1
	client, err := kubernetes.NewForConfig(config)
	fatal(t, err)
	return client
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cases are patches of one object: what is refused names the rule that refuses.
type patch struct{ name, kind, body, refused string }

func check(t *testing.T, what string, err error, refused string) {
	t.Helper()
	var status apierrors.APIStatus
	switch {
	case refused == "" && err != nil:
		t.Errorf("%s is refused: %v", what, err)
	case refused != "" && err == nil:
		t.Errorf("%s is allowed", what)
	case refused != "" && (!errors.As(err, &status) || status.Status().Code != http.StatusUnprocessableEntity || !strings.Contains(err.Error(), refused)):
		t.Errorf("%s: not refused with 422 and %q: %v", what, refused, err)
	}
}

func kind(name string) types.PatchType {
	return map[string]types.PatchType{"": types.MergePatchType, "json": types.JSONPatchType, "apply": types.ApplyPatchType, "strategic": types.StrategicMergePatchType}[name]
}

func options(name string) metav1.PatchOptions {
	o := metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	if name == "apply" {
		o.FieldManager = "device-health-controller"
	}
	return o
}

func TestTheAdmissionPolicyHoldsOurAccountToWhatIsItsOwn(t *testing.T) {
	apply(t, "overlays/enforce", "components/admission-policy")
	namespace, us := cluster.Namespace(t), everyRight(t)
	ctx := t.Context()
	admin := cluster.Client

	// One that lives: the node lifecycle controller puts taints of its own on others.
	node := fakenode.Start(t, cluster, fakenode.Spec{})
	_, err := admin.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, []byte(`{"spec":{"taints":[{"key":"theirs","effect":"NoSchedule"}]}}`), metav1.PatchOptions{})
	fatal(t, err)
	inForce(t, us, namespace, node.Name)

	t.Run("nodes", func(t *testing.T) {
		theirs := `{"key":"theirs","effect":"NoSchedule"}`
		for _, c := range []patch{
			{"our taint", "", `{"spec":{"taints":[` + theirs + `,{"key":"` + taintKey + `","effect":"NoSchedule"}]}}`, ""},
			{"our taint, preferred", "", `{"spec":{"taints":[` + theirs + `,{"key":"` + taintKey + `","effect":"PreferNoSchedule"}]}}`, ""},
			{"our taint by JSON patch", "json", `[{"op":"replace","path":"/metadata/resourceVersion","value":"FRESH"},{"op":"add","path":"/spec/taints/-","value":{"key":"` + taintKey + `","effect":"NoSchedule"}}]`, ""},
			{"our taint as NoExecute", "", `{"spec":{"taints":[` + theirs + `,{"key":"` + taintKey + `","effect":"NoExecute"}]}}`, "never NoExecute"},
			{"another's taint taken away", "", `{"spec":{"taints":[]}}`, "only taints with the key"},
			{"another's taint changed", "", `{"spec":{"taints":[{"key":"theirs","effect":"NoExecute"}]}}`, "only taints with the key"},
			{"another's taint added", "", `{"spec":{"taints":[` + theirs + `,{"key":"other","effect":"NoSchedule"}]}}`, "only taints with the key"},
			{"a cordon", "", `{"spec":{"unschedulable":true}}`, "nothing else in the spec"},
			{"a label", "", `{"metadata":{"labels":{"a":"b"}}}`, "metadata of Nodes"},
			{"an annotation", "", `{"metadata":{"annotations":{"a":"b"}}}`, "metadata of Nodes"},
		} {
			body := strings.ReplaceAll(c.body, "FRESH", fresh(t, node.Name))
			_, err := us.CoreV1().Nodes().Patch(ctx, node.Name, kind(c.kind), []byte(body), options(c.kind))
			check(t, c.name, err, c.refused)
		}
		_, err := us.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, []byte(`{"status":{"allocatable":{"cpu":"0"}}}`), options(""), "status")
		check(t, "a node's status", err, "nothing else in the status")
		applied := func(kind, reason string) []byte {
			return []byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + node.Name + `"},"status":{"conditions":[{"type":"` + kind + `","status":"True","reason":"` + reason + `"}]}}`)
		}
		for _, c := range []struct{ name, kind, reason, refused string }{
			{"our condition", "NeedsRepair", "DeviceHealthHandedOver", ""},
			{"our condition ends", "NeedsRepair", "DeviceHealthRecovered", ""},
			{"our condition with a reason that is not ours", "NeedsRepair", "Other", "only conditions with the reason"},
			{"a kubelet's condition", "Ready", "DeviceHealthHandedOver", "only conditions with the reason"},
		} {
			force := true // whoever owns it: the policy alone is to stop this
			_, err = us.CoreV1().Nodes().Patch(ctx, node.Name, types.ApplyPatchType, applied(c.kind, c.reason), metav1.PatchOptions{FieldManager: "device-health-hand-over", Force: &force, DryRun: []string{metav1.DryRunAll}}, "status")
			check(t, c.name, err, c.refused)
		}
		_, err = admin.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), options(""))
		check(t, "a cordon by somebody else", err, "")
	})

	t.Run("pods", func(t *testing.T) {
		pod, err := admin.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "train", Labels: map[string]string{"app": "train"}, Annotations: map[string]string{"theirs": "1"}, Finalizers: []string{"example.com/hold"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.test/pause:1"}}}}, metav1.CreateOptions{})
		fatal(t, err)
		t.Cleanup(func() {
			_, _ = cluster.Kubectl("", "-n", namespace, "patch", "pod", "train", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		})
		_, err = admin.CoreV1().Pods(namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(`{"status":{"conditions":[{"type":"PodScheduled","status":"True"}],"phase":"Pending"}}`), metav1.PatchOptions{}, "status")
		fatal(t, err)
		ours := `"apiVersion":"v1","kind":"Pod","metadata":{"name":"train"}`
		for _, c := range []patch{
			{"our condition", "apply", `{` + ours + `,"status":{"conditions":[{"type":"` + condition + `","status":"True"}]}}`, ""},
			{"our condition with a uid", "apply", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"train","uid":"` + string(pod.UID) + `"},"status":{"conditions":[{"type":"` + condition + `","status":"False"}]}}`, ""},
			{"another's condition", "apply", `{` + ours + `,"status":{"conditions":[{"type":"example.com/Other","status":"True"}]}}`, "only the condition"},
			{"conditions taken away", "", `{"status":{"conditions":[]}}`, "only the condition"},
			{"the phase", "", `{"status":{"phase":"Failed"}}`, "nothing else in the status"},
			{"an address", "", `{"status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}]}}`, "nothing else in the status"},
			{"the notice with our condition", "apply", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"train","annotations":{"device-health.io/notice":"{}"}},"status":{"conditions":[{"type":"` + condition + `","status":"True"}]}}`, ""},
			{"the notice taken back", "apply", `{` + ours + `,"status":{"conditions":[{"type":"` + condition + `","status":"True"}]}}`, ""},
			{"an answer in the pod's name", "", `{"metadata":{"annotations":{"device-health.io/notice-response":"done"}}}`, "only the annotation device-health.io/notice"},
			{"another's annotation taken away", "", `{"metadata":{"annotations":{"theirs":null}}}`, "only the annotation device-health.io/notice"},
			{"an annotation through the status", "", `{"metadata":{"annotations":{"a":"b"}}}`, "only the annotation device-health.io/notice"},
			{"a label through the status", "", `{"metadata":{"labels":{"app":"other"}}}`, "labels, finalizers and owners of Pods"},
		} {
			_, err := us.CoreV1().Pods(namespace).Patch(ctx, pod.Name, kind(c.kind), []byte(c.body), options(c.kind), "status")
			check(t, c.name, err, c.refused)
		}
		_, err = us.CoreV1().Pods(namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), options(""))
		check(t, "the Pod itself", err, "only the status of Pods")
		_, err = us.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: pod.Spec}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		check(t, "a new Pod", err, "only the status of Pods")
	})

	t.Run("jobs", func(t *testing.T) {
		suspended, limit := true, int32(0)
		_, err := admin.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "train", Annotations: map[string]string{"theirs": "1"}},
			Spec: batchv1.JobSpec{Suspend: &suspended, BackoffLimit: &limit, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{Name: "main", Image: "registry.test/pause:1"}}}}}}, metav1.CreateOptions{})
		fatal(t, err)
		for _, c := range []patch{
			{"a credit", "", `{"metadata":{"annotations":{"device-health.io/retry-credits":"{}"}},"spec":{"backoffLimit":1}}`, ""},
			{"resuming it", "", `{"spec":{"suspend":false}}`, "nothing but backoffLimit"},
			{"its parallelism", "", `{"spec":{"parallelism":9}}`, "nothing but backoffLimit"},
			{"its deadline", "", `{"spec":{"activeDeadlineSeconds":9}}`, "nothing but backoffLimit"},
			{"its image while suspended", "strategic", `{"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`, "nothing but backoffLimit"},
			{"another's annotation", "", `{"metadata":{"annotations":{"theirs":"2"}}}`, "only annotations under device-health.io/"},
			{"another's annotation taken away", "", `{"metadata":{"annotations":{"theirs":null}}}`, "only annotations under device-health.io/"},
			{"an annotation that is not ours", "", `{"metadata":{"annotations":{"new":"1"}}}`, "only annotations under device-health.io/"},
			{"a label", "", `{"metadata":{"labels":{"a":"b"}}}`, "rest of the metadata"},
		} {
			_, err := us.BatchV1().Jobs(namespace).Patch(ctx, "train", kind(c.kind), []byte(c.body), options(c.kind))
			check(t, c.name, err, c.refused)
		}
		_, err = us.BatchV1().Jobs(namespace).Patch(ctx, "train", types.MergePatchType, []byte(`{"status":{"failed":1}}`), options(""), "status")
		check(t, "a Job's status", err, "not their status")
		again := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "again", Annotations: map[string]string{"theirs": "1"}}, Spec: batchv1.JobSpec{
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "registry.test/pause:1"}}}}}}
		dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		_, err = us.BatchV1().Jobs(namespace).Create(ctx, again, dry)
		check(t, "a new Job", err, "recreated-from")
		again.Labels = map[string]string{"device-health.io/recreated-from": "0000"}
		_, err = us.BatchV1().Jobs(namespace).Create(ctx, again, dry)
		check(t, "a Job in place of a dead one", err, "")
	})

	t.Run("devicetaintrules", func(t *testing.T) {
		rules := admin.ResourceV1().DeviceTaintRules()
		word := func(s string) *string { return &s }
		ours, err := rules.Create(ctx, rule("dhc-"+realcluster.Unique("ours"), taintKey, "NoSchedule", &resourcev1.DeviceTaintSelector{Driver: word("d.example.com"), Pool: word("p"), Device: word("x")}), metav1.CreateOptions{})
		fatal(t, err)
		theirs, err := rules.Create(ctx, rule(realcluster.Unique("theirs"), "example.com/bad", "NoSchedule", &resourcev1.DeviceTaintSelector{Driver: word("d.example.com"), Pool: word("p"), Device: word("y")}), metav1.CreateOptions{})
		fatal(t, err)
		t.Cleanup(func() { _, _ = cluster.Kubectl("", "delete", "devicetaintrule", ours.Name, theirs.Name) })
		body := func(name, key, effect, selector string) string {
			return `{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{"name":"` + name + `"},"spec":{"deviceSelector":{` + selector + `},"taint":{"key":"` + key + `","effect":"` + effect + `"}}}`
		}
		one := `"driver":"d.example.com","pool":"p","device":"x"`
		for _, c := range []struct{ what, name, body, refused string }{
			{"a rule of ours", "dhc-new", body("dhc-new", taintKey, "NoSchedule", one), ""},
			{"a staged rule of ours", "dhc-new", body("dhc-new", taintKey, "None", one), ""},
			{"a rule with NoExecute", "dhc-new", body("dhc-new", taintKey, "NoExecute", one), "None or NoSchedule"},
			{"a rule with another key", "dhc-new", body("dhc-new", "example.com/bad", "NoSchedule", one), "key is device-health.io/unhealthy"},
			{"a rule for every device", "dhc-new", body("dhc-new", taintKey, "NoSchedule", ""), "one driver, pool and device"},
			{"a rule for a whole driver", "dhc-new", body("dhc-new", taintKey, "NoSchedule", `"driver":"d.example.com"`), "one driver, pool and device"},
			{"a rule with another name", "new", body("new", taintKey, "NoSchedule", one), "only rules named dhc-"},
			{"another's rule", theirs.Name, body(theirs.Name, taintKey, "NoSchedule", one), "only rules named dhc-"},
		} {
			o := options("apply")
			force := true
			o.Force = &force
			_, err := us.ResourceV1().DeviceTaintRules().Patch(ctx, c.name, types.ApplyPatchType, []byte(c.body), o)
			check(t, c.what, err, c.refused)
		}
		dry := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
		check(t, "our rule's end", us.ResourceV1().DeviceTaintRules().Delete(ctx, ours.Name, dry), "")
		check(t, "the end of another's rule", us.ResourceV1().DeviceTaintRules().Delete(ctx, theirs.Name, dry), "only rules named dhc-")
	})
}

// inForce waits until the API server has read all four policies.
func inForce(t *testing.T, us kubernetes.Interface, namespace, node string) {
	t.Helper()
	ctx, dry := t.Context(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	pod := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "registry.test/pause:1"}}}
	realcluster.Eventually(t, patience, "the policies are in force", func() error {
		_, cordon := us.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), options(""))
		_, create := us.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: pod}, dry)
		_, job := us.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}}}, dry)
		_, taint := us.ResourceV1().DeviceTaintRules().Create(ctx, rule("probe", taintKey, "None", &resourcev1.DeviceTaintSelector{}), dry)
		for _, err := range []error{cordon, create, job, taint} {
			if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
				return fmt.Errorf("one is not refused yet: %v", err)
			}
		}
		return nil
	})
}

// The policy refuses nothing that the controller does: a whole story under it, with the roles and the configuration of the overlay.
func TestUnderTheAdmissionPolicyTheControllerDoesAllItsWork(t *testing.T) {
	apply(t, "overlays/enforce", "components/admission-policy")
	dhc.StartReady(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, dhc.Account, "")}) // the ConfigMap that comes with it is accepted
	namespace := cluster.Namespace(t)
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{"example.com/gpu": {"gpu-0", "gpu-1"}}})
	sick := workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1, Resource: "example.com/gpu"}.Create(t, cluster)[0]
	controller := dhc.StartReady(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, dhc.Account, ""), Policy: dhc.Policy{Namespace: namespace}.Text()})
	node.Break(t, "example.com/gpu", "gpu-0")
	realcluster.Eventually(t, patience, "the Pod is replaced", func() error {
		for _, pod := range workload.Pods(t, cluster, namespace, "infer") {
			if pod.UID != sick.UID && pod.Status.Phase == corev1.PodRunning {
				return nil
			}
		}
		return errors.New("not yet")
	})
	for _, sample := range []string{`device_health_actions_total{action="EvictPod",outcome="ok"}`, `device_health_actions_total{action="ApplyCondition",outcome="ok"}`} {
		realcluster.Eventually(t, patience, sample+" is counted", func() error {
			if count := controller.Metric(t, sample); count < 1 {
				return fmt.Errorf("it is %v", count)
			}
			return nil
		})
	}
	if err := controller.Says("denied request"); err == nil {
		t.Error("the policy refused something:\n" + controller.LogText(t))
	}
}

// The same for a Job that gets its retry back, and is told so.
func TestUnderTheAdmissionPolicyTheControllerGivesAJobItsRetryBack(t *testing.T) {
	apply(t, "overlays/enforce", "components/admission-policy")
	namespace, resource := cluster.Namespace(t), "example.com/"+realcluster.Unique("gpu")
	node := fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{resource: {"gpu-0", "gpu-1"}}})
	inForce(t, everyRight(t), namespace, node.Name)
	sick := workload.Job{Namespace: namespace, Name: "train", Parallelism: 1, Resource: resource}.Create(t, cluster)[0]
	policy := dhc.Policy{Namespace: namespace, JobRetry: "{settle: 3s}"}.Text()
	controller := dhc.StartReady(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, dhc.Account, ""), Policy: policy, InCluster: true})
	node.Break(t, resource, "gpu-0")
	realcluster.Eventually(t, patience, "the Pod is replaced and its credit spent", func() error {
		job, err := cluster.Client.BatchV1().Jobs(namespace).Get(t.Context(), "train", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if text := job.Annotations["device-health.io/retry-credits"]; *job.Spec.BackoffLimit != 1 || !strings.Contains(text, string(sick.UID)) || !strings.Contains(text, `"spent"`) {
			return fmt.Errorf("its limit is %d, its record %s", *job.Spec.BackoffLimit, text)
		}
		for _, pod := range workload.Pods(t, cluster, namespace, "train") {
			if pod.UID != sick.UID && pod.Status.Phase == corev1.PodRunning {
				return nil
			}
		}
		return errors.New("no replacement runs yet")
	})
	if err := controller.Says("denied request"); err == nil {
		t.Error("the policy refused something:\n" + controller.LogText(t))
	}
}

// The same for taints: a rule made, raised and removed, a node's taint put on and taken off, the state written.
func TestUnderTheAdmissionPolicyTheControllerTaintsAndUntaints(t *testing.T) {
	apply(t, "overlays/enforce", "components/admission-policy")
	namespace := cluster.Namespace(t)
	driver, resource := realcluster.Unique("gpu")+".example.com", "example.com/"+realcluster.Unique("gpu")
	node := fakenode.Start(t, cluster, fakenode.Spec{DRA: map[string][]string{driver: {"gpu-0", "gpu-1"}}, Plugin: map[string][]string{resource: {"gpu-0", "gpu-1"}}})
	_, err := cluster.Client.CoreV1().Nodes().Patch(t.Context(), node.Name, types.MergePatchType, []byte(`{"spec":{"taints":[{"key":"theirs","effect":"PreferNoSchedule"}]}}`), metav1.PatchOptions{})
	fatal(t, err)
	inForce(t, everyRight(t), namespace, node.Name)
	template := workload.DeviceClass(t, cluster, namespace, driver)
	pod := workload.Deployment{Namespace: namespace, Name: "train", Replicas: 1, ClaimTemplate: template}.Create(t, cluster)[0]
	workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 1, Resource: resource}.Create(t, cluster)
	policy := dhc.Policy{Namespace: namespace, NoEvict: true, Recover: "{healthyFor: 2s, hold: 24h}",
		Taint: "{device: Staged, node: NoSchedule, nodeAtLeast: {devices: 1, percent: 1}}"}.Text()
	controller := dhc.StartReady(t, dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, dhc.Account, ""), Policy: policy, InCluster: true})
	await := func(action string, count float64) {
		t.Helper()
		realcluster.Eventually(t, patience, fmt.Sprint(action, " is done ", count, " times"), func() error {
			if done := controller.Metric(t, fmt.Sprintf(`device_health_actions_total{action=%q,outcome="ok"}`, action)); done < count {
				return fmt.Errorf("%v times", done)
			}
			return nil
		})
	}
	id, _ := workload.Device(pod)
	device := id[strings.LastIndexByte(id, '/')+1:]
	node.SetHealth(driver, device, "Unhealthy", "Xid 79")
	await("ApplyRule", 2) // None, then NoSchedule
	node.Break(t, resource, "gpu-0")
	await("PatchNodeTaint", 1)
	node.SetHealth(driver, device, "Healthy", "")
	node.SetHealth(resource, "gpu-0", "Healthy", "")
	fatal(t, node.PublishStatus(t.Context()))
	await("DeleteRule", 1)
	await("PatchNodeTaint", 2)
	await("WriteState", 1)
	if err := controller.Says("denied request"); err == nil {
		t.Error("the policy refused something:\n" + controller.LogText(t))
	}
}

func fresh(t *testing.T, node string) string {
	t.Helper()
	now, err := cluster.Client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	fatal(t, err)
	return now.ResourceVersion
}

func rule(name, key, effect string, selector *resourcev1.DeviceTaintSelector) *resourcev1.DeviceTaintRule {
	return &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.DeviceTaintRuleSpec{DeviceSelector: selector, Taint: resourcev1.DeviceTaint{Key: key, Effect: resourcev1.DeviceTaintEffect(effect)}}}
}
