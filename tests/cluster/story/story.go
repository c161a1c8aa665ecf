// Package story is what every story needs, whatever the node under it: a controller with what the audit log says of it, and the
// questions that a test asks the API server afterwards.
package story

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/workload"
)

// Condition is the type of our Pod condition.
const Condition = "device-health.io/DeviceUnhealthy"

// Run is one controller with its policy, and what the audit log says of it.
type Run struct {
	*dhc.Controller
	cp    *realcluster.ControlPlane
	since time.Time
}

// Start runs a controller until the end of the test, and waits until it is ready.
func Start(t *testing.T, cp *realcluster.ControlPlane, settings dhc.Settings) Run {
	t.Helper()
	if settings.Kubeconfig == "" {
		settings.Kubeconfig = dhc.Kubeconfig(t, cp, dhc.Account, "")
	}
	since := time.Now()
	r := Run{dhc.StartReady(t, settings), cp, since}
	t.Cleanup(func() { // before the controller's own, which stops it
		if t.Failed() {
			r.explain(t, "")
		}
	})
	return r
}

// Since is the same controller, asked about all that happened since a time: also what those before it did.
func (r Run) Since(since time.Time) Run { return Run{r.Controller, r.cp, since} }

// Audited is what our service account does from now on, whichever processes or Pods speak for it: no controller of the test's own.
func Audited(cp *realcluster.ControlPlane) Run { return Run{cp: cp, since: time.Now()} }

// Join makes the story of one namespace out of a controller that several tests share.
func Join(t *testing.T, cp *realcluster.ControlPlane, controller *dhc.Controller, namespace string) Run {
	t.Helper()
	r := Run{controller, cp, time.Now()}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("---- controller about %s, last 60 lines\n%s", namespace, controller.LogOf(namespace, 60))
			r.explain(t, namespace)
		}
	})
	return r
}

// explain prints what an operator would ask for first, of one namespace and what has none, or of all.
func (r Run) explain(t *testing.T, namespace string) {
	where := "--all-namespaces"
	if namespace != "" {
		where = "--namespace=" + namespace
	}
	for _, what := range [][]string{{"pods", "--output=wide"}, {"resourceclaims"}, {"nodes"}, {"events", "--sort-by=.lastTimestamp"}} {
		if text, err := r.cp.Kubectl("", append([]string{"get", where}, what...)...); err == nil {
			t.Logf("---- %s\n%s", what[0], text)
		}
	}
	_, said, err := r.Ask()
	if err != nil { // it may have died of what failed
		t.Logf("---- /verdicts: %v", err)
		return
	}
	var verdicts strings.Builder
	for _, v := range said.Verdicts {
		if namespace == "" || v.Subject.Namespace == "" || v.Subject.Namespace == namespace {
			fmt.Fprintf(&verdicts, "%s %s/%s %s: %s (%s)\n", v.Subject.Kind, v.Subject.Namespace, v.Subject.Name, v.Reason, v.Message, v.Device)
		}
	}
	t.Logf("---- /verdicts\n%s", &verdicts)
}

// Began is since when the audit log is asked.
func (r Run) Began() time.Time { return r.since }

// Requests of the controller since it started.
func (r Run) Requests(t *testing.T, keep func(realcluster.AuditEvent) bool) []realcluster.AuditEvent {
	t.Helper()
	events, err := r.cp.Audit(r.since, func(e realcluster.AuditEvent) bool {
		return e.User.Username == dhc.User(dhc.Account) && keep(e)
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// Writes are its requests that could change something; asking for one's own rights cannot.
func (r Run) Writes(t *testing.T) []realcluster.AuditEvent {
	t.Helper()
	return r.Requests(t, func(e realcluster.AuditEvent) bool {
		return e.Writes() && e.ObjectRef.Resource != "selfsubjectaccessreviews"
	})
}

// Evictions that it sent for a Pod, by the code of the answer.
func (r Run) Evictions(t *testing.T, pod corev1.Pod) map[int]int {
	t.Helper()
	codes := map[int]int{}
	for _, e := range r.Requests(t, func(e realcluster.AuditEvent) bool {
		return e.Verb == "create" && e.ObjectRef.Subresource == "eviction" && e.ObjectRef.Namespace == pod.Namespace && e.ObjectRef.Name == pod.Name
	}) {
		codes[e.Response.Code]++
	}
	return codes
}

// AwaitReplacement waits until the Pod is gone and its workload has count Pods Running without it.
func AwaitReplacement(t *testing.T, cp *realcluster.ControlPlane, pod corev1.Pod, count int) (pods []corev1.Pod) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, pod.Name+" is replaced", func() error {
		pods = nil
		for _, now := range workload.Pods(t, cp, pod.Namespace, pod.Labels["app"]) {
			if now.UID == pod.UID {
				return fmt.Errorf("it is still there")
			}
			if now.Status.Phase == corev1.PodRunning {
				pods = append(pods, now)
			}
		}
		if len(pods) != count {
			return fmt.Errorf("%d Pods run: %s", len(pods), workload.Describe(t, cp, pod.Namespace, pod.Labels["app"]))
		}
		return nil
	})
	return pods
}

// AwaitGone waits until the Pod's object is gone.
func AwaitGone(t *testing.T, cp *realcluster.ControlPlane, pod corev1.Pod) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, pod.Name+" is gone", func() error {
		list, err := cp.Client.CoreV1().Pods(pod.Namespace).List(t.Context(), metav1.ListOptions{})
		if err == nil && slices.ContainsFunc(list.Items, func(now corev1.Pod) bool { return now.UID == pod.UID }) {
			err = fmt.Errorf("it is still there")
		}
		return err
	})
}

// AwaitState waits until the state ConfigMap contains some words.
func AwaitState(t *testing.T, cp *realcluster.ControlPlane, words string) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, fmt.Sprintf("the state says %q", words), func() error {
		state, err := cp.Client.CoreV1().ConfigMaps(dhc.Namespace).Get(t.Context(), dhc.State, metav1.GetOptions{})
		if err == nil && !strings.Contains(state.Data["incidents.json"], words) {
			err = fmt.Errorf("it says %s", state.Data["incidents.json"])
		}
		return err
	})
}

// Stays watches for a while that the Pod is neither evicted nor replaced.
func (r Run) Stays(t *testing.T, pod corev1.Pod, during time.Duration) {
	t.Helper()
	realcluster.Never(t, during, pod.Name+" is left alone", func() error {
		now, err := r.cp.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if now.UID != pod.UID || now.DeletionTimestamp != nil {
			return fmt.Errorf("it goes")
		}
		return nil
	})
	if sent := r.Evictions(t, pod); len(sent) > 0 {
		t.Fatalf("evictions were sent for %s: %v", pod.Name, sent)
	}
}

// AwaitEvent waits for an Event of ours about an object, with this reason.
func AwaitEvent(t *testing.T, cp *realcluster.ControlPlane, namespace, name, reason string) (found eventsv1.Event) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, fmt.Sprintf("Event %s on %s", reason, name), func() error {
		list, err := cp.Client.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		var others []string
		for _, event := range list.Items {
			if event.Regarding.Name != name {
				continue
			}
			if event.Reason == reason {
				found = event
				return nil
			}
			others = append(others, event.Reason)
		}
		return fmt.Errorf("there are %v", others)
	})
	return found
}

// ExpectEvents says which reasons our Events in a namespace have, and no others.
func ExpectEvents(t *testing.T, cp *realcluster.ControlPlane, namespace string, reasons ...string) {
	t.Helper()
	list, err := cp.Client.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range list.Items {
		if strings.Contains(event.ReportingController, "device-health") && !slices.Contains(reasons, event.Reason) {
			t.Errorf("an Event nobody needs: %s on %s %s: %s", event.Reason, event.Regarding.Kind, event.Regarding.Name, event.Note)
		}
	}
}

// AwaitCondition waits until our condition on the Pod has this status, "" meaning that it is absent.
func AwaitCondition(t *testing.T, cp *realcluster.ControlPlane, pod corev1.Pod, status corev1.ConditionStatus) (found *corev1.PodCondition) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, fmt.Sprintf("our condition on %s is %q", pod.Name, status), func() error {
		now, err := cp.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		found = workload.Condition(now, Condition)
		if found == nil && status != "" || found != nil && found.Status != status {
			return fmt.Errorf("it is %+v", found)
		}
		return nil
	})
	return found
}

// AwaitHealth waits until the Pod's status says this of its device.
func AwaitHealth(t *testing.T, cp *realcluster.ControlPlane, pod corev1.Pod, health corev1.ResourceHealthStatus) {
	t.Helper()
	realcluster.Eventually(t, 30*time.Second, pod.Name+" shows "+string(health), func() error {
		now, err := cp.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if _, is := workload.Device(*now); is != health {
			return fmt.Errorf("it is %s", is)
		}
		return nil
	})
}

// DeviceOf is the device that a Pod holds, once the kubelet shows it.
func DeviceOf(t *testing.T, cp *realcluster.ControlPlane, pod corev1.Pod) string {
	t.Helper()
	var id string
	realcluster.Eventually(t, 0, pod.Name+" shows its device", func() error {
		now, err := cp.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if id, _ = workload.Device(*now); id == "" {
			return fmt.Errorf("status %+v", now.Status.ContainerStatuses)
		}
		return nil
	})
	return id
}

// Holder is the Pod that holds a device.
func Holder(t *testing.T, pods []corev1.Pod, device string) corev1.Pod {
	t.Helper()
	for _, pod := range pods {
		if id, _ := workload.Device(pod); id == device {
			return pod
		}
	}
	t.Fatalf("no Pod holds %s", device)
	return corev1.Pod{}
}

// ExpectEvictedOnce says that one eviction of the Pod was granted. The record of a request may come a moment after its effect; a second one
// does not go away by waiting.
func ExpectEvictedOnce(t *testing.T, r Run, pod corev1.Pod) {
	t.Helper()
	realcluster.Eventually(t, 0, pod.Name+" was evicted once", func() error {
		if sent := r.Evictions(t, pod); sent[http.StatusCreated] != 1 {
			return fmt.Errorf("evictions by answer: %v, not one 201", sent)
		}
		return nil
	})
}

// ExpectUntouched says that the Pod is what it was and that no eviction of it was asked for.
func ExpectUntouched(t *testing.T, r Run, pod corev1.Pod) {
	t.Helper()
	now, err := r.cp.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil || now.UID != pod.UID || now.DeletionTimestamp != nil {
		t.Errorf("%s was touched: %v", pod.Name, err)
	}
	if sent := r.Evictions(t, pod); len(sent) > 0 {
		t.Errorf("evictions of %s were sent: %v", pod.Name, sent)
	}
}

// EvictedIn counts the evictions that were granted in a namespace.
func (r Run) EvictedIn(t *testing.T, namespace string) int {
	t.Helper()
	return len(r.Requests(t, func(e realcluster.AuditEvent) bool {
		return e.Verb == "create" && e.ObjectRef.Subresource == "eviction" && e.ObjectRef.Namespace == namespace && e.Response.Code == http.StatusCreated
	}))
}

// EvictedAt is when the API server received the eviction of the Pod that it granted.
func (r Run) EvictedAt(t *testing.T, pod corev1.Pod) (at time.Time) {
	t.Helper()
	for _, e := range r.Requests(t, func(e realcluster.AuditEvent) bool {
		return e.Verb == "create" && e.ObjectRef.Subresource == "eviction" && e.ObjectRef.Namespace == pod.Namespace && e.ObjectRef.Name == pod.Name
	}) {
		if e.Response.Code == http.StatusCreated {
			at = e.Received
		}
	}
	return at
}
