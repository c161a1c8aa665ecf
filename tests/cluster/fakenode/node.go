// Package fakenode is a node without a machine: the Node object, its heartbeat, and what a kubelet would write about the Pods
// bound to it, device health included. Nothing runs.
package fakenode

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"device-health.io/controller/tests/cluster/realcluster"
)

// Spec of a node. Plugin names the device-plugin resources and their device IDs, DRA the drivers and their devices, which form
// one pool named like the node.
type Spec struct {
	Labels map[string]string
	Plugin map[string][]string
	DRA    map[string][]string
	// Termination is how long a Pod takes to end after it was told to. Zero: at once.
	Termination time.Duration
	// ExitZero: a Pod that is told to end succeeds, as one whose containers exit 0 on SIGTERM.
	ExitZero bool
	// ExitCode is the code with which the containers of a Pod end that is told to. Zero: its status does not say.
	ExitCode int32
	// StepByStep: a Pod that is told to end runs on until LetPodsEnd, and its object stays until LetPodsGo, whatever Termination says.
	StepByStep bool
	// OneResourceID: the drivers give every device the same first CDI name, and the kubelet tells only the first device of an entry.
	OneResourceID bool
}

// Node is one running fake node. Its methods may be called from any goroutine.
type Node struct {
	Name string

	spec     Spec
	client   kubernetes.Interface
	pods     cache.Store
	mutex    sync.Mutex
	health   map[device]report
	cards    map[device]string
	assigned map[string]map[device]bool // by Pod UID
	shown    map[string]string          // by Pod UID: the status last written
	ending   map[string]time.Time
	step     step
	slices   map[string]int64 // pool generation by driver
	extra    map[types.UID]map[string]any
	claims   map[string][]resourcev1.DeviceRequestAllocationResult
	boots    int
	errors   func(format string, args ...any)
}

// step is how far the Pods of a node that goes StepByStep may end.
type step int

const (
	runOn step = iota
	end
	goAway
)

type device struct{ source, id string } // source: resource name or driver
type report struct{ health, message string }

// Start makes the node and keeps it alive until the end of the test, when the node is deleted.
func Start(t *testing.T, cp *realcluster.ControlPlane, spec Spec) *Node {
	t.Helper()
	n := &Node{
		Name: realcluster.Unique("node"), spec: spec, client: cp.Client, health: map[device]report{}, cards: map[device]string{}, assigned: map[string]map[device]bool{},
		shown: map[string]string{}, ending: map[string]time.Time{}, slices: map[string]int64{}, extra: map[types.UID]map[string]any{}, claims: map[string][]resourcev1.DeviceRequestAllocationResult{},
	}
	said := ""
	n.errors = func(format string, args ...any) {
		if text := fmt.Sprintf(n.Name+": "+format, args...); text != said { // once, not at every turn
			said = text
			t.Log(text)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	if err := n.register(ctx); err != nil {
		stop()
		t.Fatalf("fake node: %v", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(n.client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = "spec.nodeName=" + n.Name
	}))
	informer := factory.Core().V1().Pods().Informer()
	n.pods = informer.GetStore()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		factory.Shutdown()
		n.remove()
	})
	for driver := range spec.DRA {
		if err := n.PublishSlice(t.Context(), driver, nil); err != nil {
			t.Fatalf("fake node: %v", err)
		}
	}
	realcluster.Eventually(t, 30*time.Second, "node "+n.Name+" schedulable", func() error {
		node, err := n.client.CoreV1().Nodes().Get(t.Context(), n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(node.Spec.Taints) > 0 && !cp.Options.WithoutControllers {
			return fmt.Errorf("taints %v", node.Spec.Taints)
		}
		return nil
	})
	return n
}

func (n *Node) register(ctx context.Context) error {
	labels := map[string]string{"kubernetes.io/hostname": n.Name, "kubernetes.io/os": "linux"}
	for name, value := range n.spec.Labels {
		labels[name] = value
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels}}
	if _, err := n.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Namespace: corev1.NamespaceNodeLease}}
	if _, err := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := n.beat(ctx); err != nil {
		return err
	}
	return n.PublishStatus(ctx)
}

// beat renews the node's lease: without it the node lifecycle controller calls the node unreachable after 40 s.
func (n *Node) beat(ctx context.Context) error {
	leases := n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	seconds, now := int32(40), metav1.NowMicro()
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &n.Name, LeaseDurationSeconds: &seconds, RenewTime: &now}
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

func (n *Node) run(ctx context.Context) {
	turn, heart := time.NewTicker(50*time.Millisecond), time.NewTicker(10*time.Second)
	defer turn.Stop()
	defer heart.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-heart.C:
			if err := n.beat(ctx); err != nil && ctx.Err() == nil {
				n.errors("heartbeat: %v", err)
			}
		case <-turn.C:
			n.mutex.Lock()
			for _, pod := range n.sortedPods() {
				if err := n.sync(ctx, pod); err != nil && ctx.Err() == nil {
					n.errors("pod %s: %v", pod.Name, err)
				}
			}
			n.mutex.Unlock()
		}
	}
}

func (n *Node) sortedPods() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, object := range n.pods.List() {
		pods = append(pods, object.(*corev1.Pod))
	}
	sort.Slice(pods, func(i, j int) bool { return pods[i].Name < pods[j].Name })
	return pods
}

// PublishStatus writes the node's status: capacity counts all devices of a plugin, allocatable the healthy ones.
func (n *Node) PublishStatus(ctx context.Context) error {
	n.mutex.Lock()
	capacity := corev1.ResourceList{"cpu": resource.MustParse("32"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
	allocatable := capacity.DeepCopy()
	for name, ids := range n.spec.Plugin {
		healthy := 0
		for _, id := range ids {
			if n.healthOf(device{name, id}).health == "Healthy" {
				healthy++
			}
		}
		capacity[corev1.ResourceName(name)] = *resource.NewQuantity(int64(len(ids)), resource.DecimalSI)
		allocatable[corev1.ResourceName(name)] = *resource.NewQuantity(int64(healthy), resource.DecimalSI)
	}
	boot := fmt.Sprintf("boot-%d-of-%s", n.boots, n.Name)
	n.mutex.Unlock()
	return n.updateStatus(ctx, func(status *corev1.NodeStatus) {
		status.Capacity, status.Allocatable = capacity, allocatable
		status.NodeInfo.BootID, status.NodeInfo.KubeletVersion = boot, "v"+realcluster.Release().Version
	}, corev1.ConditionTrue)
}

// Reboot shows another boot of the machine. Its Pods live on, as those do whose kubelet starts their containers again.
func (n *Node) Reboot(t *testing.T) {
	t.Helper()
	n.mutex.Lock()
	n.boots++
	n.mutex.Unlock()
	if err := n.PublishStatus(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// SetReady says Ready=True or False, as the kubelet would.
func (n *Node) SetReady(ctx context.Context, ready bool) error {
	word := corev1.ConditionFalse
	if ready {
		word = corev1.ConditionTrue
	}
	return n.updateStatus(ctx, func(*corev1.NodeStatus) {}, word)
}

func (n *Node) updateStatus(ctx context.Context, change func(*corev1.NodeStatus), ready corev1.ConditionStatus) error {
	for {
		node, err := n.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&node.Status)
		now := metav1.Now()
		// As a kubelet, it leaves the conditions of others as they are.
		node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: ready, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now})
		if _, err = n.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); !isConflict(err) {
			return err
		}
	}
}

// SetHealth is what a device plugin or DRA driver says about a device; Pods that hold it show it at once, the node's
// allocatable only with the next PublishStatus, as on a real kubelet.
func (n *Node) SetHealth(source, id, health, message string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.health[device{source, id}] = report{health, message}
}

// SetPodStatus adds a field to what the kubelet writes about a Pod.
func (n *Node) SetPodStatus(pod types.UID, field string, value any) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.extra[pod] = map[string]any{field: value}
}

// LetPodsEnd lets the containers end of all Pods that are told to, now and later.
func (n *Node) LetPodsEnd() { n.let(end) }

// LetPodsGo lets the objects of ended Pods go, as a kubelet does that has unmounted their volumes.
func (n *Node) LetPodsGo() { n.let(goAway) }

func (n *Node) let(next step) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.step = next
}

// Forget lets the node write everything again: what it has written may be gone.
func (n *Node) Forget() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	clear(n.shown)
}

// Break makes a plugin's device Unhealthy in the Pod and lowers allocatable.
func (n *Node) Break(t *testing.T, source, id string) {
	t.Helper()
	n.SetHealth(source, id, "Unhealthy", "")
	if err := n.PublishStatus(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (n *Node) healthOf(d device) report {
	if r, ok := n.health[d]; ok {
		return r
	}
	return report{health: "Healthy"}
}

func (n *Node) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	now := int64(0)
	for _, pod := range n.sortedPods() {
		_ = n.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	}
	for driver := range n.slices {
		_ = n.client.ResourceV1().ResourceSlices().Delete(ctx, sliceName(n.Name, driver), metav1.DeleteOptions{})
	}
	_ = n.client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{})
	_ = n.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(ctx, n.Name, metav1.DeleteOptions{})
}
