package campaign

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// together are so many controllers that watch one cluster at the same time, each with its own cuts.
const together = 8

// aquarium is a cluster that observers look at: each turn changes an object of every kind that they watch, back and forth.
type aquarium struct {
	t         *testing.T
	on        *plane
	namespace string
	node      *fakenode.Node
	plugin    string
	device    string
	template  string
	turns     int
}

func newAquarium(t *testing.T, on *plane) *aquarium {
	t.Helper()
	a := &aquarium{t: t, on: on, namespace: on.cp.Namespace(t), plugin: "example.com/" + realcluster.Unique("gpu")}
	driver := realcluster.Unique("gpu") + ".example.com"
	a.node = fakenode.Start(t, on.cp, fakenode.Spec{DRA: map[string][]string{driver: {"gpu-0", "gpu-1"}}, Plugin: map[string][]string{a.plugin: {"gpu-0", "gpu-1"}}})
	a.template = workload.DeviceClass(t, on.cp, a.namespace, driver)
	pods := workload.Deployment{Namespace: a.namespace, Name: "serve", Replicas: 1, Resource: a.plugin}.Create(t, on.cp)
	workload.Deployment{Namespace: a.namespace, Name: "infer", Replicas: 1, ClaimTemplate: a.template}.Create(t, on.cp)
	a.device = story.DeviceOf(t, on.cp, pods[0])
	a.config()
	return a
}

func (a *aquarium) must(err error) {
	a.t.Helper()
	if err != nil && !apierrors.IsNotFound(err) {
		a.t.Fatal(err)
	}
}

// config writes the configuration, which is a kind that they watch, too.
func (a *aquarium) config() {
	a.t.Helper()
	dhc.WriteConfigMap(a.t, a.on.cp, dhc.Policy{Namespace: a.namespace, Mode: "observe", After: fmt.Sprintf("%dms", 100+a.turns%2)}.Text())
}

// turn changes one object of each kind.
func (a *aquarium) turn() {
	a.t.Helper()
	ctx, client, odd := a.t.Context(), a.on.cp.Client, a.turns%2 == 0
	a.turns++
	health := "Healthy"
	if odd {
		health = "Unhealthy"
	}
	a.node.SetHealth(a.plugin, a.device, health, "")
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, odd)
	_, err := client.CoreV1().Nodes().Patch(ctx, a.node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	a.must(err)
	patch = fmt.Appendf(nil, `{"metadata":{"labels":{"turn":"%d"}}}`, a.turns)
	_, err = client.CoreV1().Namespaces().Patch(ctx, a.namespace, types.MergePatchType, patch, metav1.PatchOptions{})
	a.must(err)
	a.config()
	for driver := range a.node.Drivers() {
		a.must(a.node.PublishSlice(ctx, driver, nil))
	}
	if odd {
		a.plant()
	} else {
		a.weed()
	}
}

const weed = "weed"

// plant makes an object of each kind that has none of its own here.
func (a *aquarium) plant() {
	a.t.Helper()
	ctx, client := a.t.Context(), a.on.cp.Client
	none, suspended, one := int32(0), true, intstr.FromInt32(0)
	meta, labels := metav1.ObjectMeta{Name: weed}, workload.Labels(weed)
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: workload.OneContainer(a.plugin, "", "")}
	_, err := client.AppsV1().StatefulSets(a.namespace).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: pod}}, metav1.CreateOptions{})
	a.must(err)
	_, err = client.AppsV1().ReplicaSets(a.namespace).Create(ctx, &appsv1.ReplicaSet{ObjectMeta: meta,
		Spec: appsv1.ReplicaSetSpec{Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: pod}}, metav1.CreateOptions{})
	a.must(err)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err = client.BatchV1().Jobs(a.namespace).Create(ctx, &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Suspend: &suspended, Template: pod}}, metav1.CreateOptions{})
	a.must(err)
	_, err = client.PolicyV1().PodDisruptionBudgets(a.namespace).Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: meta,
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}}}, metav1.CreateOptions{})
	a.must(err)
	_, err = client.ResourceV1().ResourceClaims(a.namespace).Create(ctx, &resourcev1.ResourceClaim{ObjectMeta: meta, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: a.template}}}}}}, metav1.CreateOptions{})
	a.must(err)
	nobodys, device := "nobodys.example.com", "none"
	_, err = client.ResourceV1().DeviceTaintRules().Create(ctx, &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: a.rule()}, Spec: resourcev1.DeviceTaintRuleSpec{
		DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: &nobodys, Device: &device},
		Taint:          resourcev1.DeviceTaint{Key: "example.com/weed", Effect: resourcev1.DeviceTaintEffectNoSchedule}}}, metav1.CreateOptions{})
	a.must(err)
}

func (a *aquarium) rule() string { return weed + "-" + a.namespace }

func (a *aquarium) weed() {
	a.t.Helper()
	ctx, client, now := a.t.Context(), a.on.cp.Client, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	a.must(client.AppsV1().StatefulSets(a.namespace).Delete(ctx, weed, now))
	a.must(client.AppsV1().ReplicaSets(a.namespace).Delete(ctx, weed, now))
	background := metav1.DeletePropagationBackground
	a.must(client.BatchV1().Jobs(a.namespace).Delete(ctx, weed, metav1.DeleteOptions{PropagationPolicy: &background}))
	a.must(client.PolicyV1().PodDisruptionBudgets(a.namespace).Delete(ctx, weed, now))
	a.must(client.ResourceV1().ResourceClaims(a.namespace).Delete(ctx, weed, now))
	a.must(client.ResourceV1().DeviceTaintRules().Delete(ctx, a.rule(), now))
}

// observer is a controller that only looks, through a proxy of its own.
type observer struct {
	*dhc.Controller
	proxy *proxy
	place int // -1: nothing of it is cut
}

// view is what an observer holds for true: how many objects of each kind, which devices are covered, and its verdicts, without times.
func (o observer) view(t *testing.T) string {
	t.Helper()
	var lines []string
	for _, kind := range []string{"Pod", "Node", "Namespace", "Job", "ResourceClaim", "ResourceSlice", "DeviceTaintRule", "PodDisruptionBudget", "ReplicaSet", "StatefulSet"} {
		lines = append(lines, fmt.Sprintf("%s %v", kind, o.Metric(t, fmt.Sprintf("device_health_objects{kind=%q}", kind))))
	}
	for _, v := range o.Verdicts(t) {
		lines = append(lines, fmt.Sprintf("%s %s/%s %s %s %s", v.Subject.Kind, v.Subject.Namespace, v.Subject.Name, v.Subject.UID, v.Device, v.Reason))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// watch starts observers, lets all of them see a turn of everything while the first stream of each kind is cut after so many bytes, and waits until each of them, and the
// one of whom nothing is cut, have one view. It returns how long each stream of the latter has been.
func (a *aquarium) watch(t *testing.T, places []int, lengths map[string]int) map[string]int {
	t.Helper()
	defer func(outer *testing.T) { a.t = outer }(a.t)
	a.t = t
	kubeconfig := func(server string) string { return dhc.Kubeconfig(t, a.on.cp, dhc.Account, server) }
	var all []observer
	for _, place := range append([]int{-1}, places...) {
		p, err := newProxy(a.on.cp)
		if err != nil {
			t.Fatal(err)
		}
		defer p.close()
		cuts := map[string]int{}
		for sort, length := range lengths {
			if place >= 0 && place < length {
				cuts[sort] = place
			}
		}
		p.countAndCut(cuts)
		one, err := dhc.LaunchShared(t.TempDir(), dhc.Settings{Kubeconfig: kubeconfig(p.server), Mode: "observe", NoEvents: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, ended := one.Ended(0); ended {
				t.Errorf("the controller that was cut at byte %d has ended", place)
			}
			one.Kill()
			_ = one.End() // it was killed: only so that nobody holds it for alive
		}()
		all = append(all, observer{one, p, place})
	}
	for _, one := range all {
		realcluster.Eventually(t, patience, "it is ready", func() error { return one.Ready(t) })
	}
	for range 10 { // a list may be shorter than that of the one who was measured, and events come later
		a.turn()
		time.Sleep(300 * time.Millisecond)
		if !slices.ContainsFunc(all, func(one observer) bool { return len(one.proxy.uncut()) > 0 }) {
			break
		}
	}
	var want string
	realcluster.Eventually(t, patience, "everybody has the same view", func() error {
		want = all[0].view(t)
		for _, one := range all {
			if left := one.proxy.uncut(); len(left) > 0 {
				return fmt.Errorf("byte %d has not come in %v", one.place, left)
			}
			if got := one.view(t); got != want {
				return fmt.Errorf("who was cut at byte %d says\n%s\nnot\n%s", one.place, got, want)
			}
		}
		if told := strings.Contains(want, "WouldEvict") || strings.Contains(want, "NodeCordoned"); told != (a.turns%2 == 1) {
			return fmt.Errorf("after turn %d they say\n%s", a.turns, want)
		}
		return nil
	})
	seen := map[string]int{}
	for _, one := range all[0].proxy.answered() {
		if strings.HasPrefix(one.What, "watch ") && one.N == 1 && one.Status == 200 {
			seen[one.What] = one.Bytes
		}
	}
	return seen
}

// Any stream may be cut after any byte. It goes on where it was, or begins anew, and nobody can tell afterwards.
func TestAStreamThatIsCutAfterAnyByteLeavesTheSameView(t *testing.T) {
	if wanted := os.Getenv("DHC_CAMPAIGN"); wanted != "" && wanted != "streams" {
		return
	}
	on := <-free
	defer func() { free <- on }()
	a := newAquarium(t, on)
	lengths := a.watch(t, nil, nil)
	for sort, length := range a.watch(t, nil, nil) {
		lengths[sort] = min(lengths[sort], length) // a turn back may be shorter than one forth
	}
	t.Logf("lengths of the streams in bytes: %v", lengths)
	if len(lengths) < 11 {
		t.Fatalf("only %d streams: %v", len(lengths), lengths)
	}
	whole := 0
	for _, length := range lengths {
		whole += length
	}
	longest := slices.Max(slices.Collect(maps.Values(lengths)))
	from, to := 0, 2*together
	if os.Getenv("DHC_CAMPAIGN") != "" {
		from, to = number(t, "DHC_CAMPAIGN_FROM", 0), min(longest, number(t, "DHC_CAMPAIGN_TO", longest))
	}
	var order []fault
	for at := range longest {
		order = append(order, fault{Byte: at})
	}
	order = scattered(order)
	t.Logf("streams: %d of %d places", to-from, longest)
	for ; from < to; from += together {
		var places []int
		for _, f := range order[from:min(from+together, to)] {
			places = append(places, f.Byte)
		}
		began := time.Now()
		same := t.Run(fmt.Sprintf("bytes %v", places), func(t *testing.T) { a.watch(t, places, lengths) })
		for i, place := range places {
			for sort, length := range lengths {
				if place < length {
					note(t, on, result{"streams", from + i, whole, fmt.Sprintf("%s: cut after %d bytes", sort, place), true, same, time.Since(began).Seconds()})
				}
			}
		}
	}
}
