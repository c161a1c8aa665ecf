package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

const (
	taintKey = "device-health.io/unhealthy"
	job      = "train"
)

// version of the controller that is installed or runs.
type version int

const (
	release010 version = iota
	thisVersion
)

// policies are what both versions read: DRA devices are tainted and their Pods evicted, nodes with bad plugin devices are tainted, Jobs get
// retries back. This version would hold evictions by caps that 0.1.0 does not know, and that so small a cluster reaches.
func (f *fleet) policies(v version) string {
	policy := func(name, rules string) string {
		return fmt.Sprintf("apiVersion: device-health.io/v1alpha1\nkind: DeviceHealthPolicy\nmetadata: {name: %s}\nspec:\n  mode: enforce\n  after: 0s\n"+
			"  match: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}}\n%s---\n", name, f.namespaces[name], rules)
	}
	text := policy("dra", "  taint: {device: NoSchedule}\n  evict: {after: 0s}\n  recover: {healthyFor: 2s, hold: 24h}\n") +
		policy("nodes", "  taint: {node: NoSchedule, nodeAtLeast: {devices: 2, percent: 50}}\n  recover: {healthyFor: 2s, hold: 24h}\n") +
		policy("jobs", "  evict: {after: 0s}\n  jobRetry: {settle: 6s}\n") +
		"apiVersion: device-health.io/v1alpha1\nkind: ControllerLimits\nmetadata: {name: default}\nspec:\n" +
		"  evictions: {perMinute: 600, maxInFlight: 10, perNode: 10, perOwner: 10}\n  brake: {percent: 100, atLeast: 100}\n"
	if v == thisVersion {
		text += "  caps: {cluster: {percent: 100}, node: {percent: 100}, perDay: {percent: 100, atLeast: 100}, ownerDevicesPerDay: {percent: 100}}\n"
	}
	return text
}

// fleet is a node with DRA devices, two with plugin devices for Pods that stay, and one for a Job.
type fleet struct {
	namespaces           map[string]string // by the name of the policy
	driver, template     string
	resource, ofJobs     string
	dra, jobs            *fakenode.Node
	nodes                [2]*fakenode.Node
	began                time.Time
	evicted              []corev1.Pod // so far, each once
	credits, nodePatches int          // so far
	rulesMade            int
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{namespaces: map[string]string{}, driver: realcluster.Unique("gpu") + ".example.com", resource: "example.com/" + realcluster.Unique("gpu"),
		ofJobs: "example.com/" + realcluster.Unique("gpu"), began: time.Now()}
	for _, name := range []string{"dra", "nodes", "jobs"} {
		f.namespaces[name] = cluster.Namespace(t)
	}
	ids := func(count int) (names []string) {
		for i := range count {
			names = append(names, fmt.Sprint("gpu-", i))
		}
		return names
	}
	f.dra = fakenode.Start(t, cluster, fakenode.Spec{DRA: map[string][]string{f.driver: ids(12)}, Termination: time.Second})
	for i := range f.nodes {
		f.nodes[i] = fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{f.resource: ids(2)}})
	}
	f.jobs = fakenode.Start(t, cluster, fakenode.Spec{Plugin: map[string][]string{f.ofJobs: ids(4)}, Termination: time.Second})
	f.template = workload.DeviceClass(t, cluster, f.namespaces["dra"], f.driver)
	workload.Deployment{Namespace: f.namespaces["nodes"], Name: "infer", Replicas: 4, Resource: f.resource}.Create(t, cluster)
	workload.Job{Namespace: f.namespaces["jobs"], Name: job, Parallelism: 1, Resource: f.ofJobs}.Create(t, cluster)
	t.Cleanup(func() {
		for _, rule := range f.rules(context.Background(), t) {
			_ = cluster.Client.ResourceV1().DeviceTaintRules().Delete(context.Background(), rule.Name, metav1.DeleteOptions{})
		}
	})
	return f
}

// installed applies the manifests of a version, as its user would.
func installed(t *testing.T, v version) {
	t.Helper()
	if v == thisVersion {
		must(t, dhc.Install(cluster))
		return
	}
	_, err := cluster.Kubectl("", "apply", "-k", filepath.Join(earlier.Manifests, "base"))
	must(t, err)
}

// start runs a version beside whatever runs, until it is ready to lead.
func (f *fleet) start(t *testing.T, v version) story.Run {
	t.Helper()
	settings := dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, cluster, dhc.Account, ""), Policy: f.policies(v), InCluster: true, Elect: true}
	if v == release010 {
		settings.Earlier = earlier.Program
	}
	return story.Start(t, cluster, settings).Since(f.began)
}

// holder makes a Deployment of one Pod and says which DRA device it holds.
func (f *fleet) holder(t *testing.T, name string) (pod corev1.Pod, device string) {
	t.Helper()
	pod = workload.Deployment{Namespace: f.namespaces["dra"], Name: name, Replicas: 1, ClaimTemplate: f.template}.Create(t, cluster)[0]
	id, _ := workload.Device(pod)
	return pod, id[strings.LastIndexByte(id, '/')+1:]
}

func (f *fleet) breaks(device string) { f.dra.SetHealth(f.driver, device, "Unhealthy", "Xid 79") }

// moves breaks the device of a new Deployment's Pod, and waits until it is tainted and the Pod replaced.
func (f *fleet) moves(t *testing.T, name string) (device string, rule resourcev1.DeviceTaintRule) {
	t.Helper()
	pod, device := f.holder(t, name)
	f.breaks(device)
	rule = f.awaitRule(t, device)
	story.AwaitReplacement(t, cluster, pod, 1)
	f.evicted = append(f.evicted, pod)
	return device, rule
}

// rules that select devices of the fleet, whoever made them.
func (f *fleet) rules(ctx context.Context, t *testing.T) (found []resourcev1.DeviceTaintRule) {
	t.Helper()
	list, err := cluster.Client.ResourceV1().DeviceTaintRules().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range list.Items {
		if s := rule.Spec.DeviceSelector; s != nil && s.Driver != nil && *s.Driver == f.driver {
			found = append(found, rule)
		}
	}
	return found
}

func (f *fleet) rulesOf(t *testing.T, device string) []resourcev1.DeviceTaintRule {
	t.Helper()
	return slices.DeleteFunc(f.rules(t.Context(), t), func(rule resourcev1.DeviceTaintRule) bool { return *rule.Spec.DeviceSelector.Device != device })
}

// awaitRule waits until one rule keeps new Pods off a device.
func (f *fleet) awaitRule(t *testing.T, device string) (rule resourcev1.DeviceTaintRule) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, device+" is tainted", func() error {
		rules := f.rulesOf(t, device)
		if len(rules) != 1 || rules[0].Spec.Taint.Effect != resourcev1.DeviceTaintEffectNoSchedule {
			return fmt.Errorf("there are %+v", rules)
		}
		rule = rules[0]
		return nil
	})
	f.rulesMade++
	return rule
}

// stand watches for three seconds that each of these rules, and none besides, is as it was made.
func (f *fleet) stand(t *testing.T, rules ...resourcev1.DeviceTaintRule) {
	t.Helper()
	realcluster.Never(t, 3*time.Second, "the rules stand as they were", func() error {
		now := f.rules(t.Context(), t)
		for _, rule := range rules {
			if !slices.ContainsFunc(now, func(n resourcev1.DeviceTaintRule) bool {
				return n.UID == rule.UID && n.Spec.Taint.Effect == rule.Spec.Taint.Effect
			}) {
				return fmt.Errorf("%s has gone or changed: %+v", rule.Name, now)
			}
		}
		if len(now) != len(rules) {
			return fmt.Errorf("%d rules, not %d: %+v", len(now), len(rules), now)
		}
		return nil
	})
}

// acknowledges writes an operator's word on a rule, and waits until the rule is removed.
func (f *fleet) acknowledges(t *testing.T, rule resourcev1.DeviceTaintRule) {
	t.Helper()
	_, err := cluster.Client.ResourceV1().DeviceTaintRules().Patch(t.Context(), rule.Name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"device-health.io/acknowledge":"card changed"}}}`), metav1.PatchOptions{FieldManager: "kubectl-annotate"})
	must(t, err)
	device := *rule.Spec.DeviceSelector.Device
	realcluster.Eventually(t, time.Minute, device+" is untainted", func() error {
		if now := f.rulesOf(t, device); len(now) > 0 {
			return fmt.Errorf("there are %+v", now)
		}
		return nil
	})
}

// fails breaks every device of a node with plugin devices.
func (f *fleet) fails(t *testing.T, node *fakenode.Node) {
	t.Helper()
	for _, id := range []string{"gpu-0", "gpu-1"} {
		node.Break(t, f.resource, id)
	}
	f.awaitTainted(t, node, true)
}

// recovers makes them healthy again.
func (f *fleet) recovers(t *testing.T, node *fakenode.Node) {
	t.Helper()
	for _, id := range []string{"gpu-0", "gpu-1"} {
		node.SetHealth(f.resource, id, "Healthy", "")
	}
	must(t, node.PublishStatus(t.Context()))
	f.awaitTainted(t, node, false)
}

func (f *fleet) awaitTainted(t *testing.T, node *fakenode.Node, wanted bool) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, fmt.Sprintf("%s tainted: %t", node.Name, wanted), func() error {
		now, err := cluster.Client.CoreV1().Nodes().Get(t.Context(), node.Name, metav1.GetOptions{})
		must(t, err)
		if is := slices.ContainsFunc(now.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == taintKey }); is != wanted {
			return fmt.Errorf("its taints are %v", now.Spec.Taints)
		}
		return nil
	})
	f.nodePatches++
}

// jobLoses breaks the device of the Job's Pod, and waits until the Job has its retry back, counted the loss and replaced the Pod.
func (f *fleet) jobLoses(t *testing.T) {
	t.Helper()
	pod := workload.AwaitRunning(t, cluster, f.namespaces["jobs"], job, 1)[0]
	device, _ := workload.Device(pod)
	f.jobs.Break(t, f.ofJobs, device)
	story.AwaitReplacement(t, cluster, pod, 1)
	f.evicted = append(f.evicted, pod)
	f.credits++
	f.expectCredits(t)
}

// expectCredits says that the Job runs on, with one retry given back for each loss.
func (f *fleet) expectCredits(t *testing.T) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, fmt.Sprintf("the Job has counted %d losses", f.credits), func() error {
		now, err := cluster.Client.BatchV1().Jobs(f.namespaces["jobs"]).Get(t.Context(), job, metav1.GetOptions{})
		must(t, err)
		var record struct{ Credits []json.RawMessage }
		if err := json.Unmarshal([]byte(now.Annotations["device-health.io/retry-credits"]), &record); err != nil {
			return err
		}
		if int(*now.Spec.BackoffLimit) != f.credits || int(now.Status.Failed) != f.credits || len(record.Credits) != f.credits || len(now.Status.Conditions) > 0 {
			return fmt.Errorf("its limit is %d, its record %s, and it is %+v", *now.Spec.BackoffLimit, now.Annotations["device-health.io/retry-credits"], now.Status)
		}
		return nil
	})
}

// expectDoneOnce says what all versions together have written since the beginning: one eviction for each Pod that had to move and none besides, one
// new limit for each credit, one patch for each taint that came or went, and one rule for each device.
func (f *fleet) expectDoneOnce(t *testing.T, run story.Run) {
	t.Helper()
	for _, pod := range f.evicted {
		story.ExpectEvictedOnce(t, run, pod)
	}
	granted, credits, patches, made := 0, 0, 0, 0
	for _, e := range run.Writes(t) {
		switch what := e.ObjectRef.Resource; {
		case e.ObjectRef.Subresource == "eviction" && e.Response.Code == http.StatusCreated:
			granted++
		case what == "jobs" && e.Response.Code == http.StatusOK && strings.Contains(string(e.Request), "backoffLimit"): // else a note
			credits++
		case what == "nodes" && e.Response.Code == http.StatusOK:
			patches++
		case what == "devicetaintrules" && e.Response.Code == http.StatusCreated:
			made++
		}
	}
	if granted != len(f.evicted) || credits != f.credits || patches != f.nodePatches || made != f.rulesMade {
		t.Errorf("%d evictions for %d Pods, %d patches for %d credits, %d patches for %d taints of nodes that came or went, %d rules for %d devices",
			granted, len(f.evicted), credits, f.credits, patches, f.nodePatches, made, f.rulesMade)
	}
}

// stateOf010 is what 0.1.0 has written, and at which version.
func stateOf010(t *testing.T) (text, version string) {
	t.Helper()
	state, err := cluster.Client.CoreV1().ConfigMaps(dhc.Namespace).Get(t.Context(), dhc.EarlierState, metav1.GetOptions{})
	must(t, err)
	return state.Data["devices.json"], state.ResourceVersion
}

// await010Remembers waits until 0.1.0 has written some words.
func await010Remembers(t *testing.T, words ...string) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, fmt.Sprintf("0.1.0 writes %q", words), func() error {
		text, _ := stateOf010(t)
		for _, word := range words {
			if !strings.Contains(text, word) {
				return fmt.Errorf("it says %s", text)
			}
		}
		return nil
	})
}
