package fakenode

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func sliceName(node, driver string) string { return node + "-" + driver }

// PublishSlice writes the driver's devices on this node, with the taints given by device name, in a new pool generation.
func (n *Node) PublishSlice(ctx context.Context, driver string, taints map[string][]resourcev1.DeviceTaint) error {
	n.mutex.Lock()
	n.slices[driver]++
	generation := n.slices[driver]
	var devices []resourcev1.Device
	for _, name := range n.spec.DRA[driver] {
		published := resourcev1.Device{Name: name, Taints: taints[name]}
		if card, ok := n.cards[device{driver, name}]; ok {
			published.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: &card}}
		}
		devices = append(devices, published)
	}
	n.mutex.Unlock()
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: sliceName(n.Name, driver)},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &n.Name, Devices: devices,
			Pool: resourcev1.ResourcePool{Name: n.Name, Generation: generation, ResourceSliceCount: 1},
		},
	}
	slices := n.client.ResourceV1().ResourceSlices()
	known, err := slices.Get(ctx, slice.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = slices.Create(ctx, slice, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	slice.ResourceVersion = known.ResourceVersion
	_, err = slices.Update(ctx, slice, metav1.UpdateOptions{})
	return err
}

// Drivers are those of its DRA devices, with the names of these.
func (n *Node) Drivers() map[string][]string { return n.spec.DRA }

// SetCard says which physical card sits in the place of a device; the slice tells it with the next PublishSlice.
func (n *Node) SetCard(driver, name, uuid string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.cards[device{driver, name}] = uuid
}

// claimHealth is what the kubelet shows of the claims that a container names; the resource ID is the driver's CDI name.
func (n *Node) claimHealth(pod *corev1.Pod, container corev1.Container) (entries []any) {
	for _, used := range container.Resources.Claims {
		name := "claim:" + used.Name
		if used.Request != "" {
			name += "/" + used.Request
		}
		resources := []any{}
		for _, result := range n.results(pod, used.Name) {
			if request, _, _ := strings.Cut(result.Request, "/"); used.Request != "" && request != used.Request {
				continue
			}
			if n.spec.OneResourceID && len(resources) > 0 {
				continue // a kubelet drops what has an ID that it has told already
			}
			seen := n.healthOf(device{result.Driver, result.Device})
			id := result.Driver + "/" + result.Pool + "/" + result.Device
			if n.spec.OneResourceID {
				id = "k8s." + result.Driver + "/gpu=common"
			}
			entry := map[string]any{"resourceID": id, "health": seen.health}
			if seen.message != "" {
				entry["message"] = seen.message
			}
			resources = append(resources, entry)
		}
		if len(resources) > 0 {
			entries = append(entries, map[string]any{"name": name, "resources": resources})
		}
	}
	return entries
}

// results are the devices that the scheduler gave to one claim of a Pod.
func (n *Node) results(pod *corev1.Pod, podClaim string) []resourcev1.DeviceRequestAllocationResult {
	name := ""
	for _, entry := range pod.Spec.ResourceClaims {
		if entry.Name == podClaim && entry.ResourceClaimName != nil {
			name = *entry.ResourceClaimName
		}
	}
	for _, made := range pod.Status.ResourceClaimStatuses {
		if made.Name == podClaim && made.ResourceClaimName != nil {
			name = *made.ResourceClaimName
		}
	}
	uid := string(pod.UID) + "/" + podClaim
	if known, ok := n.claims[uid]; ok {
		return known
	}
	claim, err := n.client.ResourceV1().ResourceClaims(pod.Namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil || claim.Status.Allocation == nil {
		return nil
	}
	n.claims[uid] = claim.Status.Allocation.Devices.Results // an allocation does not change while a Pod uses it
	return n.claims[uid]
}

// NoSchedule is the taint of a driver that calls these devices bad.
func NoSchedule(devices ...string) map[string][]resourcev1.DeviceTaint {
	taints := map[string][]resourcev1.DeviceTaint{}
	for _, name := range devices {
		taints[name] = []resourcev1.DeviceTaint{{Key: "driver.example.com/broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	}
	return taints
}
