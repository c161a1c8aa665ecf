package campaign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// twist is what is different in a story that no proxy disturbs.
type twist struct {
	wrapper    []string    // of the controller's program
	records    string      // a folder for what it records
	evictAfter string      // of the policy
	rulesMore  int         // than in the undisturbed story
	before     func(*told) // is called when the controller is ready and all is well
	broken     func(*told) // is called when the devices have gone bad
}

const lease = "device-health-controller"

// plane is a control plane with a proxy that stands before it. It tells one story at a time: two controllers would take each other's rules for their own.
type plane struct {
	cp    *realcluster.ControlPlane
	proxy *proxy
}

// outcome is what a story leaves behind, without what differs from run to run.
type outcome struct {
	Evicted         map[string]int // accepted evictions of a workload's first Pods
	EvictedOthers   int            // and of any other
	RulesMade       int
	RulesLeft       int
	BackoffLimit    int32
	JobFailures     int32 // that its controller has counted
	JobHasEnded     bool
	State           []string // what is remembered
	ConditionsLeft  int      // of Pods that are still called unhealthy by us
	NeighbourStayed bool     // the Pod on a healthy device
}

func (o outcome) String() string {
	text, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// told is one run of the story.
type told struct {
	t         *testing.T
	on        *plane
	settings  dhc.Settings
	fault     *fault
	began     time.Time
	namespace string
	node      *fakenode.Node
	driver    string

	running   *dhc.Controller
	restarts  int
	restarted bool

	train, infer, serve, neighbour corev1.Pod
}

// patience bounds each step of a story, also under a fault: the longest waits of the controller's own are a minute.
const patience = 150 * time.Second

// tell runs the main story in small: DRA devices of a Job and of a Deployment, and a plugin device of a Deployment with a budget, go bad. The DRA devices are tainted, the
// Job gets its retry back, the three Pods are evicted, those of the Deployments run elsewhere, and the taints go after their hold. (The Job controller makes its next Pod
// only ten seconds later, for which no run waits.) Whoever dies of the fault is started again. It returns when all that has happened, and a moment later nothing has
// happened twice.
func (on *plane) tell(t *testing.T, f *fault, w twist) (outcome, []answer) {
	t.Helper()
	s := &told{t: t, on: on, fault: f, began: time.Now()}
	s.forget()
	s.namespace, s.driver = on.cp.Namespace(t), realcluster.Unique("gpu")+".example.com"
	plugin := "example.com/" + realcluster.Unique("gpu")
	s.node = fakenode.Start(t, on.cp, fakenode.Spec{DRA: map[string][]string{s.driver: {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}, Plugin: map[string][]string{plugin: {"gpu-0", "gpu-1", "gpu-2", "gpu-3"}}})
	t.Cleanup(s.removeRules)
	template := workload.DeviceClass(t, on.cp, s.namespace, s.driver)
	workload.Deployment{Namespace: s.namespace, Name: "serve", Replicas: 2, Resource: plugin}.CreateOnly(t, on.cp)
	workload.Deployment{Namespace: s.namespace, Name: "infer", Replicas: 1, ClaimTemplate: template}.CreateOnly(t, on.cp)
	s.train = workload.Job{Namespace: s.namespace, Name: "train", Parallelism: 1, BackoffLimit: 0, ClaimTemplate: template}.Create(t, on.cp)[0]
	s.infer = workload.AwaitRunning(t, on.cp, s.namespace, "infer", 1)[0]
	serving := workload.AwaitRunning(t, on.cp, s.namespace, "serve", 2)
	workload.Budget(t, on.cp, s.namespace, "serve", 1)
	s.serve, s.neighbour = serving[0], serving[1]
	bad, _ := workload.Device(s.serve)
	policy := dhc.Policy{Namespace: s.namespace, EvictAfter: w.evictAfter, Taint: "{device: NoSchedule}", Recover: "{hold: 2s, healthyFor: 1h}", JobRetry: "{settle: 1s}"}
	s.settings = dhc.Settings{Kubeconfig: dhc.Kubeconfig(t, on.cp, dhc.Account, on.proxy.server), Policy: policy.Text(), InCluster: true, Elect: true,
		Wrapper: w.wrapper, Records: w.records}
	s.began = time.Now()
	s.launch()
	s.await("it is ready, or has been struck", func() error {
		if !on.proxy.struckAt().IsZero() {
			return nil
		}
		return s.running.Ready(t)
	})
	if w.before != nil {
		w.before(s)
	}
	trains, infers := s.device(s.train), s.device(s.infer)
	s.node.SetHealth(s.driver, trains, "Unhealthy", "Xid 79")
	s.node.SetHealth(s.driver, infers, "Unhealthy", "Xid 79")
	s.node.Break(t, plugin, bad)
	if w.broken != nil {
		w.broken(s)
	}
	if f != nil && f.isLong() {
		s.held()
		if err := s.running.End(); err != nil {
			t.Error(err)
		}
		return outcome{}, nil
	}
	s.await("the Job's Pod is gone", func() error { return s.gone(s.train) })
	s.node.SetHealth(s.driver, trains, "Healthy", "")
	s.await("the DRA device's Pod runs elsewhere", func() error { return s.replaced(s.infer, 1) })
	// The Job's next Pod may be given either device once it is untainted: it would be another incident.
	s.node.SetHealth(s.driver, infers, "Healthy", "")
	s.await("the plugin device's Pod runs elsewhere", func() error { return s.replaced(s.serve, 2) })
	s.await("the taints go", s.isOver)
	if f != nil { // what comes late may be struck late
		for deadline := time.Now().Add(2 * time.Second); on.proxy.struckAt().IsZero() && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		}
	}
	s.await("the story is over", s.isOver)
	s.await("whoever leads is ready", func() error { return s.running.Ready(t) })
	time.Sleep(time.Second) // for what must not come twice there is nothing to wait for
	s.supervise()
	found, asked := s.found(), on.proxy.answered()
	if err := s.running.End(); err != nil {
		t.Error(err)
	}
	return found, asked
}

// launch starts the controller, and begins to count its requests if it is the first.
func (s *told) launch() {
	s.t.Helper()
	started := make(chan *dhc.Controller, 1)
	if s.running == nil {
		s.on.proxy.count(s.fault, func() {
			one := <-started
			one.Kill()
			started <- one
		})
	}
	s.running = dhc.Launch(s.t, s.settings)
	started <- s.running
}

// supervise starts the controller again once it has been killed, as a kubelet would. Its Lease is removed, so that nobody waits for its time to be over.
func (s *told) supervise() {
	s.t.Helper()
	code, ended := s.running.Ended(0)
	if !ended {
		return
	}
	if s.fault == nil || !s.fault.Kill || s.on.proxy.struckAt().IsZero() || s.restarted {
		s.t.Fatalf("the controller ended with code %d", code)
	}
	err := s.on.cp.Client.CoordinationV1().Leases(dhc.Namespace).Delete(s.t.Context(), lease, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		s.t.Fatal(err)
	}
	s.restarted = true
	s.launch()
}

// await waits until check returns nil, and starts the controller again if it has been killed meanwhile.
func (s *told) await(what string, check func() error) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		s.supervise()
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// device is the name of the DRA device that a Pod shows.
func (s *told) device(pod corev1.Pod) string {
	s.t.Helper()
	id := story.DeviceOf(s.t, s.on.cp, pod)
	return id[strings.LastIndexByte(id, '/')+1:]
}

func (s *told) gone(pod corev1.Pod) error {
	now, err := s.on.cp.Client.CoreV1().Pods(pod.Namespace).Get(s.t.Context(), pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("%s is %s", pod.Name, now.Status.Phase)
	}
	return err
}

// replaced says that a Pod is gone and that so many run without it, each on a healthy device.
func (s *told) replaced(pod corev1.Pod, count int) error {
	running := 0
	for _, now := range workload.Pods(s.t, s.on.cp, s.namespace, pod.Labels["app"]) {
		if now.UID == pod.UID {
			return fmt.Errorf("%s is still there", pod.Name)
		}
		if _, health := workload.Device(now); now.Status.Phase == corev1.PodRunning && health == "Healthy" {
			running++
		}
	}
	if running != count {
		return fmt.Errorf("%d Pods run: %s", running, workload.Describe(s.t, s.on.cp, s.namespace, pod.Labels["app"]))
	}
	return nil
}

// isOver says that the rules have been made and are gone, and that the state has every device on probation.
func (s *told) isOver() error {
	now := s.found()
	if now.RulesMade < 2 || now.RulesLeft > 0 || strings.Count(strings.Join(now.State, ","), "the last in Probation") != 3 {
		return fmt.Errorf("it is %s", now)
	}
	return nil
}

func (s *told) requests(keep func(realcluster.AuditEvent) bool) []realcluster.AuditEvent {
	s.t.Helper()
	found, err := s.on.cp.Audit(s.began, func(e realcluster.AuditEvent) bool { return e.User.Username == dhc.User(dhc.Account) && keep(e) })
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// found is the outcome as it is now.
func (s *told) found() (o outcome) {
	s.t.Helper()
	ctx := s.t.Context()
	o.Evicted = map[string]int{}
	for _, e := range s.requests(func(e realcluster.AuditEvent) bool {
		return e.ObjectRef.Subresource == "eviction" && e.Response.Code == 201
	}) {
		switch e.ObjectRef.Name {
		case s.train.Name, s.infer.Name, s.serve.Name:
			o.Evicted[e.ObjectRef.Name[:5]]++
		default:
			o.EvictedOthers++
		}
	}
	o.RulesMade = len(s.requests(func(e realcluster.AuditEvent) bool {
		return e.ObjectRef.Resource == "devicetaintrules" && e.Verb == "patch" && e.Response.Code == 201
	}))
	o.RulesLeft = len(s.rules())
	job, err := s.on.cp.Client.BatchV1().Jobs(s.namespace).Get(ctx, "train", metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	o.BackoffLimit, o.JobFailures = *job.Spec.BackoffLimit, job.Status.Failed
	for _, condition := range job.Status.Conditions {
		o.JobHasEnded = o.JobHasEnded || condition.Type == batchv1.JobFailed || condition.Type == batchv1.JobComplete
	}
	if o.State, err = s.state(ctx); err != nil {
		s.t.Fatal(err)
	}
	pods, err := s.on.cp.Client.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range pods.Items {
		if found := workload.Condition(&pods.Items[i], story.Condition); found != nil && found.Status == corev1.ConditionTrue {
			o.ConditionsLeft++
		}
		o.NeighbourStayed = o.NeighbourStayed || pods.Items[i].UID == s.neighbour.UID && pods.Items[i].DeletionTimestamp == nil
	}
	return o
}

// state is what the state ConfigMap remembers, without names and times.
func (s *told) state(ctx context.Context) (lines []string, err error) {
	found, err := s.on.cp.Client.CoreV1().ConfigMaps(dhc.Namespace).Get(ctx, dhc.State, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var state struct {
		Caps struct {
			Charges   []json.RawMessage
			Evictions []struct {
				Scope string
				Count int
			}
			Workloads []struct {
				Workload string
				Devices  map[string]string
			}
		}
		Devices []struct {
			Source string
			Past   struct {
				Incidents int
				LostBy    []json.RawMessage
			}
			Incident *struct{ Phase string }
		}
	}
	if err := json.Unmarshal([]byte(found.Data["incidents.json"]), &state); err != nil {
		return nil, fmt.Errorf("the state cannot be read: %w", err)
	}
	for _, one := range state.Devices {
		phase := "none"
		if one.Incident != nil {
			phase = one.Incident.Phase
		}
		lines = append(lines, fmt.Sprintf("a %s device: incidents %d, the last in %s, pods lost %d", one.Source, one.Past.Incidents, phase, len(one.Past.LostBy)))
	}
	for _, one := range state.Caps.Evictions {
		sort := "dra"
		if strings.Contains(one.Scope, "/") {
			sort = "plugin"
		}
		lines = append(lines, fmt.Sprintf("%s evictions of the day: %d", sort, one.Count))
	}
	for _, one := range state.Caps.Workloads {
		lines = append(lines, fmt.Sprintf("%s devices of the day: %d", one.Workload[strings.Index(one.Workload, "/")+1:], len(one.Devices)))
	}
	if len(state.Caps.Charges) > 0 {
		lines = append(lines, fmt.Sprintf("charges that wait for their end: %d", len(state.Caps.Charges)))
	}
	slices.Sort(lines)
	return lines, nil
}

func (s *told) rules() (ours []resourcev1.DeviceTaintRule) {
	list, err := s.on.cp.Client.ResourceV1().DeviceTaintRules().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		s.t.Error(err)
		return nil
	}
	for _, rule := range list.Items {
		if selected := rule.Spec.DeviceSelector; selected != nil && selected.Driver != nil && *selected.Driver == s.driver {
			ours = append(ours, rule)
		}
	}
	return ours
}

func (s *told) removeRules() {
	for _, rule := range s.rules() {
		_ = s.on.cp.Client.ResourceV1().DeviceTaintRules().Delete(context.Background(), rule.Name, metav1.DeleteOptions{})
	}
}

// forget removes what the controller of the story before has left to the next one.
func (s *told) forget() {
	s.t.Helper()
	var errs []error
	for _, name := range []string{dhc.State, dhc.Status} {
		errs = append(errs, s.on.cp.Client.CoreV1().ConfigMaps(dhc.Namespace).Delete(s.t.Context(), name, metav1.DeleteOptions{}))
	}
	errs = append(errs, s.on.cp.Client.CoordinationV1().Leases(dhc.Namespace).Delete(s.t.Context(), lease, metav1.DeleteOptions{}))
	for _, err := range errs {
		if err != nil && !apierrors.IsNotFound(err) {
			s.t.Fatal(errors.Join(errs...))
		}
	}
}
