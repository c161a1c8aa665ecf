// Package controller tells the controller's stories on a real control plane. Each runs our binary as the service account of
// manifests/, with its roles and nothing more.
package controller

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
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/workload"
)

const (
	gpu       = "example.com/gpu"
	condition = "device-health.io/DeviceUnhealthy"
)

// The second one answers WatchList with 422, so that our client has to list.
var cluster, withoutWatchList *realcluster.ControlPlane

func TestMain(m *testing.M) {
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) error {
		cluster, withoutWatchList = planes[0], planes[1]
		if _, err := dhc.Binary(); err != nil {
			return err
		}
		for _, cp := range planes {
			if err := dhc.Install(cp); err != nil {
				return err
			}
		}
		return nil
	}, realcluster.Options{Name: "stories"}, realcluster.Options{Name: "without-watchlist", FeatureGates: map[string]bool{"WatchList": false}})
}

// gpus of one node.
func gpus(count int) map[string][]string {
	var ids []string
	for i := range count {
		ids = append(ids, fmt.Sprint("gpu-", i))
	}
	return map[string][]string{gpu: ids}
}

// run is one controller with its policy, and what the audit log says of it.
type run struct {
	*dhc.Controller
	cp    *realcluster.ControlPlane
	since time.Time
}

func start(t *testing.T, cp *realcluster.ControlPlane, settings dhc.Settings) run {
	t.Helper()
	if settings.Kubeconfig == "" {
		settings.Kubeconfig = dhc.Kubeconfig(t, cp, dhc.Account, "")
	}
	since := time.Now()
	return run{dhc.StartReady(t, settings), cp, since}
}

// requests of the controller since it started.
func (r run) requests(t *testing.T, keep func(realcluster.AuditEvent) bool) []realcluster.AuditEvent {
	t.Helper()
	events, err := r.cp.Audit(r.since, func(e realcluster.AuditEvent) bool {
		return e.User.Username == dhc.User(dhc.Account) && keep(e)
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// writes are its requests that could change something; asking for one's own rights cannot.
func (r run) writes(t *testing.T) []realcluster.AuditEvent {
	t.Helper()
	return r.requests(t, func(e realcluster.AuditEvent) bool {
		return e.Writes() && e.ObjectRef.Resource != "selfsubjectaccessreviews"
	})
}

// evictions that it sent for a Pod, by the code of the answer.
func (r run) evictions(t *testing.T, pod corev1.Pod) map[int]int {
	t.Helper()
	codes := map[int]int{}
	for _, e := range r.requests(t, func(e realcluster.AuditEvent) bool {
		return e.Verb == "create" && e.ObjectRef.Subresource == "eviction" && e.ObjectRef.Namespace == pod.Namespace && e.ObjectRef.Name == pod.Name
	}) {
		codes[e.Response.Code]++
	}
	return codes
}

// awaitReplacement waits until the Pod is gone and its workload has count Pods Running without it.
func awaitReplacement(t *testing.T, cp *realcluster.ControlPlane, pod corev1.Pod, count int) (pods []corev1.Pod) {
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
			return fmt.Errorf("%d Pods run", len(pods))
		}
		return nil
	})
	return pods
}

// stays watches for a while that the Pod is neither evicted nor replaced.
func (r run) stays(t *testing.T, pod corev1.Pod, during time.Duration) {
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
	if sent := r.evictions(t, pod); len(sent) > 0 {
		t.Fatalf("evictions were sent for %s: %v", pod.Name, sent)
	}
}

// awaitEvent waits for an Event of ours about an object, with this reason.
func awaitEvent(t *testing.T, cp *realcluster.ControlPlane, namespace, name, reason string) (found eventsv1.Event) {
	t.Helper()
	realcluster.Eventually(t, 15*time.Second, fmt.Sprintf("Event %s on %s", reason, name), func() error {
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

// expectEvents says which reasons our Events in a namespace have, and no others.
func expectEvents(t *testing.T, cp *realcluster.ControlPlane, namespace string, reasons ...string) {
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

// awaitCondition waits until our condition on the Pod has this status, "" meaning that it is absent.
func awaitCondition(t *testing.T, cp *realcluster.ControlPlane, pod corev1.Pod, status corev1.ConditionStatus) (found *corev1.PodCondition) {
	t.Helper()
	realcluster.Eventually(t, 15*time.Second, fmt.Sprintf("our condition on %s is %q", pod.Name, status), func() error {
		now, err := cp.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		found = workload.Condition(now, condition)
		if found == nil && status != "" || found != nil && found.Status != status {
			return fmt.Errorf("it is %+v", found)
		}
		return nil
	})
	return found
}

// holder is the Pod that holds a device.
func holder(t *testing.T, pods []corev1.Pod, device string) corev1.Pod {
	t.Helper()
	for _, pod := range pods {
		if id, _ := workload.Device(pod); id == device {
			return pod
		}
	}
	t.Fatalf("no Pod holds %s", device)
	return corev1.Pod{}
}

func expectEvictedOnce(t *testing.T, r run, pod corev1.Pod) {
	t.Helper()
	if sent := r.evictions(t, pod); sent[http.StatusCreated] != 1 {
		t.Errorf("evictions of %s by answer: %v, not one 201", pod.Name, sent)
	}
}

// fleet is a node with four plugin devices and a Deployment on two of them.
func fleet(t *testing.T, cp *realcluster.ControlPlane, spec fakenode.Spec) (node *fakenode.Node, namespace string, pods []corev1.Pod) {
	t.Helper()
	namespace = cp.Namespace(t)
	spec.Plugin = gpus(4)
	node = fakenode.Start(t, cp, spec)
	pods = workload.Deployment{Namespace: namespace, Name: "infer", Replicas: 2, Resource: gpu}.Create(t, cp)
	return node, namespace, pods
}
