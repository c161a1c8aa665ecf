package stage

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Node without a machine. What is about its devices is guarded by the stage's mutex.
type Node struct {
	Name    string
	devices map[*Source][]string
	gone    map[Device]bool // no longer in the driver's slice
	health  map[Device]corev1.ResourceHealthStatus
	taints  map[Device]bool // by the driver, in its slice
	slices  map[*Source]int64
	silent  map[*Source]bool // the driver publishes no slice
}

// Device of one node.
type Device struct {
	Node   string
	Source *Source
	Name   string
}

func (d Device) String() string { return d.Source.Name + "/" + d.Name + " on " + d.Node }

// resourceID by which the kubelet tells of it.
func (d Device) resourceID() string {
	if d.Source.DRA {
		return d.Source.Name + "/" + d.Node + "/" + d.Name
	}
	return d.Name
}

// Has says how many devices of a source a node has.
type Has struct {
	Source *Source
	Count  int
}

// storyLabel is on the nodes of a story, and its pods select it: nothing of theirs lands elsewhere. Nothing else lands on them, because of the taint.
const storyLabel = "device-health-conformance/story"

// AddNode makes a node with such devices, and waits until pods can be scheduled to it.
func (s *Stage) AddNode(devices ...Has) *Node {
	s.mutex.Lock()
	n := &Node{Name: fmt.Sprintf("conformance-%s-%s-%d", s.Name, s.Run, len(s.nodes)+1), devices: map[*Source][]string{}, gone: map[Device]bool{},
		health: map[Device]corev1.ResourceHealthStatus{}, taints: map[Device]bool{}, slices: map[*Source]int64{}, silent: map[*Source]bool{}}
	for _, has := range devices {
		for i := range has.Count {
			n.devices[has.Source] = append(n.devices[has.Source], fmt.Sprint("gpu-", i))
		}
	}
	s.mutex.Unlock()
	meta := s.meta(n.Name)
	meta.Labels[storyLabel], meta.Labels[corev1.LabelHostname], meta.Labels[corev1.LabelOSStable] = s.Name, n.Name, "linux"
	node := &corev1.Node{ObjectMeta: meta, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: RunLabel, Value: s.Run, Effect: corev1.TaintEffectNoSchedule}}}}
	_, err := s.Client.CoreV1().Nodes().Create(s.ctx, node, metav1.CreateOptions{})
	s.must(err)
	_, err = s.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(s.ctx, &coordinationv1.Lease{ObjectMeta: s.meta(n.Name)}, metav1.CreateOptions{})
	s.must(err)
	s.mutex.Lock()
	s.nodes[n.Name] = n // its heart beats from now on
	s.mutex.Unlock()
	s.must(s.beat(s.ctx, n))
	s.must(s.publishStatus(n))
	for source := range n.devices {
		if source.DRA {
			s.must(s.publishSlice(n, source))
		}
	}
	s.prepare("node "+n.Name+" takes pods", func() error {
		node, err := s.Client.CoreV1().Nodes().Get(s.ctx, n.Name, metav1.GetOptions{})
		if err == nil && len(node.Spec.Taints) != 1 {
			err = fmt.Errorf("it has the taints %v", node.Spec.Taints)
		}
		return err
	})
	return n
}

// beat renews the node's lease: without it the node lifecycle controller calls the node unreachable after 40 s.
func (s *Stage) beat(ctx context.Context, n *Node) error {
	leases := s.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lease, err := leases.Get(ctx, n.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &n.Name, LeaseDurationSeconds: new(int32(40)), RenewTime: new(metav1.NowMicro())}
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// publishStatus writes the node's status: capacity counts all devices of a plugin, allocatable the healthy ones, as a kubelet does.
func (s *Stage) publishStatus(n *Node) error {
	capacity := corev1.ResourceList{"cpu": resource.MustParse("32"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
	allocatable := capacity.DeepCopy()
	s.mutex.Lock()
	for source, names := range n.devices {
		if source.DRA {
			continue
		}
		healthy := 0
		for _, name := range names {
			if n.healthOf(Device{n.Name, source, name}) == corev1.ResourceHealthStatusHealthy {
				healthy++
			}
		}
		capacity[corev1.ResourceName(source.Name)] = *resource.NewQuantity(int64(len(names)), resource.DecimalSI)
		allocatable[corev1.ResourceName(source.Name)] = *resource.NewQuantity(int64(healthy), resource.DecimalSI)
	}
	s.mutex.Unlock()
	for {
		node, err := s.Client.CoreV1().Nodes().Get(s.ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now := metav1.Now()
		node.Status.Capacity, node.Status.Allocatable = capacity, allocatable
		node.Status.NodeInfo.BootID, node.Status.NodeInfo.KubeletVersion = "boot-of-"+n.Name, s.Version
		// As a kubelet, it leaves the conditions of others as they are.
		node.Status.Conditions = append(slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady }),
			corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now})
		if _, err = s.Client.CoreV1().Nodes().UpdateStatus(s.ctx, node, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return err
		}
	}
}

func (s *Stage) sliceName(n *Node, source *Source) string { return n.Name + "-" + source.short }

// publishSlice writes what the driver says of its devices on this node, in a new generation of the pool, or removes it while the driver is away.
func (s *Stage) publishSlice(n *Node, source *Source) error {
	all := s.Client.ResourceV1().ResourceSlices()
	name := s.sliceName(n, source)
	s.mutex.Lock()
	n.slices[source]++
	slice := &resourcev1.ResourceSlice{ObjectMeta: s.meta(name), Spec: resourcev1.ResourceSliceSpec{
		Driver: source.Name, NodeName: &n.Name,
		Pool: resourcev1.ResourcePool{Name: n.Name, Generation: n.slices[source], ResourceSliceCount: 1},
	}}
	for _, device := range n.devices[source] {
		d := Device{n.Name, source, device}
		if n.gone[d] {
			continue
		}
		published := resourcev1.Device{Name: device}
		if n.taints[d] {
			published.Taints = []resourcev1.DeviceTaint{{Key: source.Name + "/broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
		}
		slice.Spec.Devices = append(slice.Spec.Devices, published)
	}
	silent := n.silent[source]
	s.mutex.Unlock()
	if silent {
		return all.Delete(s.ctx, name, metav1.DeleteOptions{})
	}
	known, err := all.Get(s.ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = all.Create(s.ctx, slice, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	slice.ResourceVersion = known.ResourceVersion
	_, err = all.Update(s.ctx, slice, metav1.UpdateOptions{})
	return err
}

func (n *Node) healthOf(d Device) corev1.ResourceHealthStatus {
	if health, ok := n.health[d]; ok {
		return health
	}
	return corev1.ResourceHealthStatusHealthy
}

// say has the devices' health reported in the pods that hold them, and a plugin's in its node's allocatable, and returns when the API server shows it.
func (s *Stage) say(health corev1.ResourceHealthStatus, devices []Device) {
	nodes := map[*Node]bool{}
	s.mutex.Lock()
	for _, d := range devices {
		n := s.nodes[d.Node]
		n.health[d] = health
		if !d.Source.DRA {
			nodes[n] = true
		}
	}
	s.mutex.Unlock()
	s.nudge()
	for n := range nodes {
		s.must(s.publishStatus(n))
	}
	s.prepare(fmt.Sprintf("the pods show %s", health), func() error { return s.shown(health, devices) })
}

// shown says whether the API server has what the kubelet says of these devices, in each pod that runs on one.
func (s *Stage) shown(health corev1.ResourceHealthStatus, devices []Device) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, life := range s.lives {
		if life.Gone || life.ended || life.Pod.Status.Phase != corev1.PodRunning {
			continue
		}
		for _, d := range life.Devices {
			if slices.Contains(devices, d) && d.Source.Extended == "" && !shows(life.Pod, d, health) {
				return fmt.Errorf("%s does not, of %s", life.Pod.Name, d)
			}
		}
	}
	return nil
}

func shows(pod *corev1.Pod, d Device, health corev1.ResourceHealthStatus) bool {
	for _, container := range pod.Status.ContainerStatuses {
		for _, entry := range container.AllocatedResourcesStatus {
			for _, report := range entry.Resources {
				if string(report.ResourceID) == d.resourceID() && report.Health == health {
					return true
				}
			}
		}
	}
	return false
}

// Break has the kubelet report the devices as Unhealthy.
func (s *Stage) Break(devices ...Device) { s.say(corev1.ResourceHealthStatusUnhealthy, devices) }

// Heal has it report them as Healthy.
func (s *Stage) Heal(devices ...Device) { s.say(corev1.ResourceHealthStatusHealthy, devices) }

// Doubt has it report them as Unknown.
func (s *Stage) Doubt(devices ...Device) { s.say(corev1.ResourceHealthStatusUnknown, devices) }

// Taint has the driver put its own NoSchedule taint on a device, or take it away again.
func (s *Stage) Taint(d Device, bad bool) { s.driverSays(d, func(n *Node) { n.taints[d] = bad }) }

// Vanish takes a device out of its driver's slice.
func (s *Stage) Vanish(d Device) { s.driverSays(d, func(n *Node) { n.gone[d] = true }) }

func (s *Stage) driverSays(d Device, change func(*Node)) {
	s.mutex.Lock()
	n := s.nodes[d.Node]
	change(n)
	s.mutex.Unlock()
	s.must(s.publishSlice(n, d.Source))
}

// DriverGoes takes the driver away from its nodes, with its slices; DriverComes brings it back.
func (s *Stage) DriverGoes(source *Source)  { s.driver(source, true) }
func (s *Stage) DriverComes(source *Source) { s.driver(source, false) }

func (s *Stage) driver(source *Source, silent bool) {
	for _, n := range s.everyNode() {
		if source.DRA && len(n.devices[source]) > 0 { // a plugin has no slices
			s.mutex.Lock()
			n.silent[source] = silent
			s.mutex.Unlock()
			s.must(s.publishSlice(n, source))
		}
	}
}

func (s *Stage) everyNode() (nodes []*Node) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, n := range s.nodes {
		nodes = append(nodes, n)
	}
	return nodes
}

// All devices of a source, on all nodes.
func (s *Stage) All(source *Source) (devices []Device) {
	for _, n := range s.everyNode() {
		for _, name := range n.devices[source] {
			devices = append(devices, Device{n.Name, source, name})
		}
	}
	return devices
}

const heartbeat = 10 * time.Second
