package taint

import (
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

// expectUnspoken says that nothing of ours stands on the Pod, and that no Event of ours speaks of it.
func expectUnspoken(t *testing.T, cp *realcluster.ControlPlane, pod corev1.Pod) {
	t.Helper()
	now, err := cp.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	must(t, err)
	if found := workload.Condition(now, story.Condition); found != nil {
		t.Errorf("%s has our condition: %+v", pod.Name, found)
	}
	events, err := cp.Client.EventsV1().Events(pod.Namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, event := range events.Items {
		if event.Regarding.UID == pod.UID && strings.Contains(event.ReportingController, "device-health") {
			t.Errorf("%s has the Event %s: %s", pod.Name, event.Reason, event.Note)
		}
	}
}

// AMD's, Google's and the example driver put one common name before each device's own.
func TestPodsWhoseDriverGivesEveryDeviceOneResourceIDShareNoIncident(t *testing.T) {
	r := newRackOf(t, cluster, 4, fakenode.Spec{OneResourceID: true})
	pair := workload.DeviceClassOf(t, cluster, r.namespace, r.driver, 2)
	sick := workload.Deployment{Namespace: r.namespace, Name: "sick", Replicas: 1, ClaimTemplate: pair}.Create(t, cluster)[0]
	well := workload.Deployment{Namespace: r.namespace, Name: "well", Replicas: 1, ClaimTemplate: pair}.Create(t, cluster)[0]
	controller := r.start(t, dhc.Policy{Untainted: true, Full: "{wait: 0s}"})
	if said := controller.AwaitVerdict(t, sick.Name, "ReportIncomplete"); said.Subject.UID != string(sick.UID) {
		t.Errorf("the verdict is %+v", said)
	}
	for _, result := range allocated(t, sick) {
		r.breaks(result.Device)
	}
	again := story.AwaitReplacement(t, cluster, sick, 1)[0]
	story.ExpectEvictedOnce(t, controller, sick)
	// Only these two devices are free: the scheduler hands them out again, which helps nobody.
	controller.AwaitVerdict(t, again.Name, "ReplacementOnSameDevice")
	controller.Stays(t, again, 3*time.Second)
	story.ExpectUntouched(t, controller, well)
	expectUnspoken(t, cluster, well)
}

// allocated are the devices of a Pod's claim.
func allocated(t *testing.T, pod corev1.Pod) []resourcev1.DeviceRequestAllocationResult {
	t.Helper()
	now, err := cluster.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	must(t, err)
	claim, err := cluster.Client.ResourceV1().ResourceClaims(pod.Namespace).Get(t.Context(), *now.Status.ResourceClaimStatuses[0].ResourceClaimName, metav1.GetOptions{})
	must(t, err)
	return claim.Status.Allocation.Devices.Results
}

func TestTheFaultOfAnObservedDeviceIsNotTheObservers(t *testing.T) {
	r := newRack(t, cluster, 2)
	_, err := cluster.Client.CoreV1().Namespaces().Patch(t.Context(), r.namespace, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}}`), metav1.PatchOptions{})
	must(t, err)
	admin := true
	spec := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		{Name: "own", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: r.template, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}},
		// The scheduler gives one claim a device only once, so this is the other one.
		{Name: "observed", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: r.template, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1, AdminAccess: &admin}},
	}}}
	_, err = cluster.Client.ResourceV1().ResourceClaimTemplates(r.namespace).Create(t.Context(),
		&resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "observer"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: spec}}, metav1.CreateOptions{})
	must(t, err)
	observer := workload.Deployment{Namespace: r.namespace, Name: "observer", Replicas: 1, ClaimTemplate: "observer"}.Create(t, cluster)[0]
	own := ""
	for _, result := range allocated(t, observer) {
		if result.Request == "own" {
			own = result.Device
		}
	}
	controller := r.start(t, dhc.Policy{NoEvict: true})
	other := map[string]string{"gpu-0": "gpu-1", "gpu-1": "gpu-0"}[own]
	r.breaks(other)
	// A Pod that holds it is the proof that the fault has been seen.
	holder := workload.Deployment{Namespace: r.namespace, Name: "holder", Replicas: 1, ClaimTemplate: r.template}.Create(t, cluster)[0]
	story.AwaitCondition(t, cluster, holder, corev1.ConditionTrue)
	r.awaitRule(t, other, "NoSchedule")
	controller.Stays(t, observer, 3*time.Second)
	expectUnspoken(t, cluster, observer)
	r.breaks(own)
	story.AwaitCondition(t, cluster, observer, corev1.ConditionTrue)
}

// The device was repaired and acknowledged, and the kubelet's first word to the next Pod is Unknown: seen on a real node.
func TestTheNextPodOnARepairedDeviceHearsNothingOfAnOutageBeforeItsBirth(t *testing.T) {
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{Recover: "{healthyFor: 1h, hold: 24h}"})
	r.breaks(device)
	rule := r.awaitRule(t, device, "NoSchedule")
	story.AwaitReplacement(t, cluster, sick, 1)
	r.awaitSaid(t, controller, "Tainted", "nobody reports on it")
	patchRule(t, cluster, rule.Name, `{"metadata":{"annotations":{"`+acknowledge+`":"card replaced"}}}`)
	r.awaitNoRule(t, 20*time.Second)
	r.awaitSaid(t, controller, "Acknowledged", "an operator vouches for the device")
	r.node.SetHealth(r.driver, device, "Unknown", "")
	next := workload.Deployment{Namespace: r.namespace, Name: "next", Replicas: 1, ClaimTemplate: r.template}.Create(t, cluster)[0]
	if got := story.DeviceOf(t, cluster, next); !strings.HasSuffix(got, "/"+device) {
		t.Fatalf("it holds %s, not %s", got, device)
	}
	controller.Stays(t, next, 3*time.Second)
	expectUnspoken(t, cluster, next)
	r.heals(device)
	controller.Stays(t, next, 2*time.Second)
	expectUnspoken(t, cluster, next)
	// What the Pod sees itself concerns it.
	r.breaks(device)
	story.AwaitCondition(t, cluster, next, corev1.ConditionTrue)
}
