package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
)

// delay is what both rivals wait before they believe a report, as our policy does.
const delay = 3 * time.Second

// device that somebody calls bad, as a DeviceTaintRule names it; without pool and name, one of a plugin on a node.
type device struct{ driver, pool, name, node string }

// witness is what both rivals see of the world: the pods' reports and the drivers' own taints.
type witness struct {
	client kubernetes.Interface
	domain string // of the devices that are theirs
	pods   corelisters.PodLister
	nodes  corelisters.NodeLister
	slices resourcelisters.ResourceSliceLister
	since  map[device]time.Time // that are bad
	words  map[device]bool      // called bad by their driver
	ruled  map[device]bool      // that have a rule
}

// watch the cluster until the end, and have act look at every bad device that is believed, and at every one that is well again.
func watch(ctx context.Context, client kubernetes.Interface, domain string, act func(*witness, []device, []device) error) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	w := &witness{client, domain, factory.Core().V1().Pods().Lister(), factory.Core().V1().Nodes().Lister(), factory.Resource().V1().ResourceSlices().Lister(),
		map[device]time.Time{}, map[device]bool{}, map[device]bool{}}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	defer factory.Shutdown()
	var last error
	for {
		select {
		case <-ctx.Done():
			return last
		case <-time.After(200 * time.Millisecond):
		}
		bad, well, err := w.look()
		if err == nil {
			err = act(w, bad, well)
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
	}
}

// each report of a pod about a device that is theirs.
func (w *witness) each(act func(*corev1.Pod, device, corev1.ResourceHealthStatus) error) error {
	pods, err := w.pods.List(labels.Everything())
	for _, pod := range pods {
		for _, container := range pod.Status.ContainerStatuses {
			for _, entry := range container.AllocatedResourcesStatus {
				for _, report := range entry.Resources {
					// The suite's kubelets tell a claim's devices as DRIVER/POOL/DEVICE; others would need a look into the claim.
					d := device{driver: string(entry.Name), name: string(report.ResourceID), node: pod.Spec.NodeName}
					if parts := strings.Split(string(report.ResourceID), "/"); len(parts) == 3 {
						d = device{parts[0], parts[1], parts[2], pod.Spec.NodeName}
					}
					if strings.Contains(d.driver, w.domain) {
						err = errors.Join(err, act(pod, d, report.Health))
					}
				}
			}
		}
	}
	return err
}

// look says which devices are bad for long enough, and which no longer are.
func (w *witness) look() (bad, well []device, err error) {
	said := map[device]corev1.ResourceHealthStatus{}
	err = w.each(func(pod *corev1.Pod, d device, health corev1.ResourceHealthStatus) error {
		if said[d] != corev1.ResourceHealthStatusUnhealthy && pod.Status.Phase == corev1.PodRunning {
			said[d] = health
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	slices, err := w.slices.List(labels.Everything())
	if err != nil {
		return nil, nil, err
	}
	tainted := map[device]bool{}
	for _, slice := range slices {
		for _, published := range slice.Spec.Devices {
			d := device{slice.Spec.Driver, slice.Spec.Pool.Name, published.Name, *slice.Spec.NodeName}
			if len(published.Taints) > 0 && strings.Contains(d.driver, w.domain) {
				said[d], tainted[d] = corev1.ResourceHealthStatusUnhealthy, true
			}
		}
	}
	for d := range w.since {
		if _, err := w.nodes.Get(d.node); apierrors.IsNotFound(err) {
			delete(w.since, d)
			continue
		}
		// Its driver has taken its word back, or its holder says so.
		if said[d] == corev1.ResourceHealthStatusHealthy || said[d] == "" && w.words[d] {
			delete(w.since, d)
			well = append(well, d)
		}
	}
	w.words = tainted
	for d, health := range said {
		if health == corev1.ResourceHealthStatusUnhealthy && w.since[d].IsZero() {
			w.since[d] = time.Now()
		}
	}
	for d, since := range w.since {
		w.words[d] = w.words[d] || tainted[d]
		if time.Since(since) > delay {
			bad = append(bad, d)
		}
	}
	return bad, well, nil
}

// noExecute writes a NoExecute rule for each bad device and removes it when the device is well: the controller manager deletes the pods.
func noExecute(w *witness, bad, well []device) (err error) {
	for _, d := range bad {
		if d.pool != "" { // no rule can name a device of a plugin
			err = errors.Join(err, w.rule(d, resourcev1.DeviceTaintEffectNoExecute))
		}
	}
	for _, d := range well {
		delete(w.ruled, d)
		if problem := w.client.ResourceV1().DeviceTaintRules().Delete(context.Background(), ruleName(d), metav1.DeleteOptions{}); !apierrors.IsNotFound(problem) {
			err = errors.Join(err, problem)
		}
	}
	return err
}

func ruleName(d device) string { return strings.Join([]string{d.driver, d.pool, d.name}, ".") }

func (w *witness) rule(d device, effect resourcev1.DeviceTaintEffect) error {
	if w.ruled[d] {
		return nil
	}
	_, err := w.client.ResourceV1().DeviceTaintRules().Create(context.Background(), &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: ruleName(d)}, Spec: resourcev1.DeviceTaintRuleSpec{
		DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: &d.driver, Pool: &d.pool, Device: &d.name},
		Taint:          resourcev1.DeviceTaint{Key: "example.com/unhealthy", Effect: effect}}}, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		w.ruled[d] = true
		return nil
	}
	return err
}

// drain cordons the node of a bad device and evicts its pods, as `kubectl drain --ignore-daemonsets --delete-emptydir-data --force` does, again and
// again until none is left; it uncordons the node when its last device is well.
func drain(w *witness, bad, well []device) (err error) {
	var ill []string
	for _, d := range bad {
		ill = append(ill, d.node)
	}
	for _, d := range well {
		if !slices.Contains(ill, d.node) {
			err = errors.Join(err, w.cordon(d.node, false))
		}
	}
	slices.Sort(ill)
	for _, node := range slices.Compact(ill) {
		err = errors.Join(err, w.cordon(node, true))
		pods, problem := w.pods.List(labels.Everything())
		err = errors.Join(err, problem)
		for _, pod := range pods {
			owner := metav1.GetControllerOf(pod)
			if pod.Spec.NodeName != node || pod.DeletionTimestamp != nil || owner != nil && owner.Kind == "DaemonSet" {
				continue
			}
			problem := w.client.PolicyV1().Evictions(pod.Namespace).Evict(context.Background(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}})
			if !apierrors.IsTooManyRequests(problem) && !apierrors.IsNotFound(problem) && !apierrors.IsInternalError(problem) && !apierrors.IsConflict(problem) {
				err = errors.Join(err, problem)
			}
		}
	}
	return err
}

func (w *witness) cordon(node string, yes bool) error {
	if known, err := w.nodes.Get(node); err != nil || known.Spec.Unschedulable == yes {
		return nil
	}
	_, err := w.client.CoreV1().Nodes().Patch(context.Background(), node, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, yes), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// hasty deletes at once, without grace, every pod that shows a device that is not Healthy, whatever else is so, and keeps new pods off for good, but for those
// of DaemonSets.
func hasty(w *witness, _, _ []device) error {
	return w.each(func(pod *corev1.Pod, d device, health corev1.ResourceHealthStatus) (err error) {
		if health == corev1.ResourceHealthStatusHealthy {
			return nil
		}
		if owner := metav1.GetControllerOf(pod); owner == nil || owner.Kind != "DaemonSet" {
			err = w.rule(d, resourcev1.DeviceTaintEffectNoSchedule)
		}
		return errors.Join(err, w.delete(pod, new(int64(0))))
	})
}

// untainting evicts the pods on bad devices, and does nothing for those that come after them.
func untainting(w *witness, _, _ []device) error {
	return w.each(func(pod *corev1.Pod, _ device, health corev1.ResourceHealthStatus) error {
		if health != corev1.ResourceHealthStatusUnhealthy || pod.DeletionTimestamp != nil {
			return nil
		}
		return w.delete(pod, nil)
	})
}

func (w *witness) delete(pod *corev1.Pod, grace *int64) error {
	err := w.client.CoreV1().Pods(pod.Namespace).Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: grace})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// rival runs one of them until it is restarted or the test ends.
func rival(t *testing.T, short string, act func(*witness, []device, []device) error) (restart func()) {
	var stop context.CancelFunc
	ended := make(chan error)
	start := func() {
		var ctx context.Context
		ctx, stop = context.WithCancel(context.Background())
		go func() { ended <- watch(ctx, cluster.Client, domainOf(short), act) }()
	}
	end := func() {
		stop()
		if err := <-ended; err != nil {
			t.Logf("the last that it could not do: %v", err)
		}
	}
	start()
	t.Cleanup(end)
	return func() { end(); start() }
}
