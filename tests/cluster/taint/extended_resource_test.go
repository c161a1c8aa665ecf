package taint

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// extended makes a class of the rack's devices that Pods may ask for as a resource, without a claim of their own: the scheduler makes it.
func (r rack) extended(t *testing.T) (resource string) {
	t.Helper()
	resource = realcluster.Unique("example.com/dra")
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: realcluster.Unique("extended")}, Spec: resourcev1.DeviceClassSpec{
		ExtendedResourceName: &resource,
		Selectors:            []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", r.driver)}}}}}
	_, err := r.cp.Client.ResourceV1().DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{})
	must(t, err)
	return resource
}

// extendedDevice is what the claim says that the scheduler made for the Pod. The kubelet says nothing of it.
func (r rack) extendedDevice(t *testing.T, pod corev1.Pod) string {
	t.Helper()
	made := pod.Status.ExtendedResourceClaimStatus
	if made == nil || len(pod.Spec.ResourceClaims) > 0 {
		t.Fatalf("%s has the claims %+v, and for its resource %+v", pod.Name, pod.Spec.ResourceClaims, made)
	}
	if device, health := workload.Device(pod); device != "" {
		t.Errorf("the kubelet says that %s is %s", device, health)
	}
	claim, err := r.cp.Client.ResourceV1().ResourceClaims(pod.Namespace).Get(t.Context(), made.ResourceClaimName, metav1.GetOptions{})
	must(t, err)
	if claim.Status.Allocation == nil || len(claim.Status.Allocation.Devices.Results) != 1 {
		t.Fatalf("claim %s is allocated to %+v", claim.Name, claim.Status.Allocation)
	}
	return claim.Status.Allocation.Devices.Results[0].Device
}

// The kubelet of 1.37 reports the health of no such device: the driver's taint is all that is said, and it is enough.
func TestATaintOfTheDriverMovesThePodThatHoldsTheDeviceByAnExtendedResource(t *testing.T) {
	r := newRack(t, cluster, 3)
	resource := r.extended(t)
	sick := workload.Deployment{Namespace: r.namespace, Name: "train", Replicas: 1, Resource: resource}.Create(t, cluster)[0]
	well := workload.Deployment{Namespace: r.namespace, Name: "infer", Replicas: 1, Resource: resource}.Create(t, cluster)[0]
	device := r.extendedDevice(t, sick)
	controller := r.start(t, dhc.Policy{Match: namesTheTaint, After: "2s"})
	told := time.Now()
	must(t, r.node.PublishSlice(t.Context(), r.driver, taints(device, "79", resourcev1.DeviceTaintEffectNoSchedule)))
	next := story.AwaitReplacement(t, cluster, sick, 1)
	if again := r.extendedDevice(t, next[0]); again == device || again == r.extendedDevice(t, well) {
		t.Errorf("the replacement is on %s", again)
	}
	story.ExpectEvictedOnce(t, controller, sick)
	if waited := controller.EvictedAt(t, sick).Sub(told); waited < 2*time.Second {
		t.Errorf("evicted %s after the taint", waited)
	}
	story.ExpectUntouched(t, controller, well)
	event := story.AwaitEvent(t, cluster, r.namespace, sick.Name, "DeviceUnhealthy")
	for _, words := range []string{r.driver + "/" + r.node.Name + "/" + device, "driver.example.com/xid=79:NoSchedule"} {
		if !strings.Contains(event.Note, words) {
			t.Errorf("the Event does not say %q: %s", words, event.Note)
		}
	}
	if rules := r.rules(t.Context(), t); len(rules) != 0 {
		t.Errorf("there are rules: %+v", rules)
	}
}
