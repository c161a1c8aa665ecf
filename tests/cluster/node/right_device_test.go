package node

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/realnode"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// expectUnspoken says that no version of the Pod had our condition, and that no Event of ours speaks of it.
func expectUnspoken(t *testing.T, pod corev1.Pod, seen *story.Watched) {
	t.Helper()
	for _, version := range seen.Versions() {
		if found := workload.Condition(version.Pod, story.Condition); found != nil {
			t.Errorf("%s had our condition: %+v", pod.Name, found)
			break
		}
	}
	events, err := cluster.Client.EventsV1().Events(pod.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if event.Regarding.UID == pod.UID && strings.Contains(event.ReportingController, "device-health") {
			t.Errorf("%s has the Event %s: %s", pod.Name, event.Reason, event.Note)
		}
	}
}

// resultsOf are the devices of a Pod's only claim.
func resultsOf(t *testing.T, pod corev1.Pod) []resourcev1.DeviceRequestAllocationResult {
	t.Helper()
	now, err := cluster.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim, err := cluster.Client.ResourceV1().ResourceClaims(pod.Namespace).Get(t.Context(), *now.Status.ResourceClaimStatuses[0].ResourceClaimName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return claim.Status.Allocation.Devices.Results
}

// The claim has a device of its own and, by adminAccess, one that another Pod holds: the kubelet reports both to the observer.
func TestTheFaultOfADeviceThatAPodOnlyObservesIsNotThatPods(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	_, err := cluster.Client.CoreV1().Namespaces().Patch(t.Context(), namespace, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	driver := node.NewDriver(t, realnode.DriverOptions{Devices: 2})
	class := workload.DeviceClass(t, cluster, namespace, driver.Name)
	one := func(name string, admin *bool) resourcev1.DeviceRequest {
		return resourcev1.DeviceRequest{Name: name, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class,
			AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1, AdminAccess: admin}}
	}
	admin := true
	// The scheduler gives one claim a device only once, so that the observed device is the other one.
	spec := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{one("own", nil), one("observed", &admin)}}}
	_, err = cluster.Client.ResourceV1().ResourceClaimTemplates(namespace).Create(t.Context(),
		&resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "observer"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: spec}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	observer := workload.Deployment{Namespace: namespace, Name: "observer", Replicas: 1, ClaimTemplate: "observer"}.Create(t, cluster)[0]
	holder := workload.Deployment{Namespace: namespace, Name: "holder", Replicas: 1, ClaimTemplate: class}.Create(t, cluster)[0]
	given := map[string]string{}
	for _, result := range resultsOf(t, observer) {
		given[result.Request] = result.Device
	}
	own, observed := given["own"], given["observed"]
	if device := draDeviceOf(t, holder); device != observed || own == observed {
		t.Fatalf("the observer has %v, the holder %s", given, device)
	}
	seen := story.WatchPod(t, cluster, observer)
	controller := watchOver(t, namespace, policy{Rest: "after: 0s\ntaint: {}\nevict: {after: 10m}"})
	driver.Set(t, observed, realnode.DRADevice{Health: "Unhealthy", Message: "Xid 79"})
	story.AwaitCondition(t, cluster, holder, corev1.ConditionTrue)
	awaitTainted(t, driver, observed)
	awaitAnyHealth(t, observer, corev1.ResourceHealthStatusUnhealthy) // it was told so
	controller.Stays(t, observer, 3*time.Second)
	expectUnspoken(t, observer, seen)
	if devices := tainted(t, driver); len(devices) != 1 {
		t.Errorf("tainted are %v", devices)
	}
	driver.Set(t, own, realnode.DRADevice{Health: "Unhealthy", Message: "Xid 79"})
	story.AwaitCondition(t, cluster, observer, corev1.ConditionTrue)
	awaitTainted(t, driver, own)
}

// awaitAnyHealth waits until the kubelet says this of one of the devices of a Pod's claim.
func awaitAnyHealth(t *testing.T, pod corev1.Pod, health corev1.ResourceHealthStatus) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, "the kubelet calls a device of "+pod.Name+" "+string(health), func() error {
		now, err := cluster.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, container := range now.Status.ContainerStatuses {
			for _, entry := range container.AllocatedResourcesStatus {
				for _, device := range entry.Resources {
					if device.Health == health {
						return nil
					}
				}
			}
		}
		return fmt.Errorf("it says %+v", now.Status.ContainerStatuses)
	})
}

// AMD's, Google's and the example driver put one CDI name that all devices have in common before each device's own, and by that name the
// kubelet reports: its word about two devices of a claim is one entry, and the same for each Pod.
func TestPodsWhoseDriverGivesEveryDeviceOneCommonNameShareNoIncidentOnARealNode(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	driver := node.NewDriver(t, realnode.DriverOptions{Devices: 4, CommonFirst: true})
	pair := workload.DeviceClassOf(t, cluster, namespace, driver.Name, 2)
	sick := workload.Deployment{Namespace: namespace, Name: "sick", Replicas: 1, ClaimTemplate: pair}.Create(t, cluster)[0]
	well := workload.Deployment{Namespace: namespace, Name: "well", Replicas: 1, ClaimTemplate: pair}.Create(t, cluster)[0]
	for _, pod := range []corev1.Pod{sick, well} {
		if id := deviceOf(t, pod); !strings.HasSuffix(id, "=common") {
			t.Fatalf("the kubelet reports on %s by %q", pod.Name, id)
		}
	}
	seen := story.WatchPod(t, cluster, well)
	controller := watchOver(t, namespace, policy{Rest: "after: 0s\nevict: {after: 0s, untainted: true, whenNoReplacement: {wait: 0s}}"})
	awaitVerdict(t, controller, time.Minute, sick.Name, "ReportIncomplete", "")
	for _, result := range resultsOf(t, sick) {
		driver.Set(t, result.Device, realnode.DRADevice{Health: "Unhealthy", Message: "Xid 79"})
	}
	again := story.AwaitReplacement(t, cluster, sick, 1)[0]
	story.ExpectEvictedOnce(t, controller, sick)
	// Only these two devices are free: the scheduler hands them out again, which helps nobody.
	awaitVerdict(t, controller, time.Minute, again.Name, "ReplacementOnSameDevice", "")
	controller.Stays(t, again, 3*time.Second)
	story.ExpectUntouched(t, controller, well)
	expectUnspoken(t, well, seen)
}

// The device was repaired and acknowledged while nobody held it, and the kubelet's first word to the next Pod is Unknown.
func TestTheNextPodOnARepairedRealDeviceHearsNothingOfTheOutageBeforeIt(t *testing.T) {
	t.Parallel()
	b := newBench(t, 2, "").watched(t, "evict: {after: 0s}\nrecover: {healthyFor: 1h, hold: 24h}")
	b.breaks(t)
	rule := b.awaitRule(t, nil)
	story.AwaitReplacement(t, cluster, b.sick, 1)
	b.awaitSaid(t, "Tainted", rule.Name)
	kubectl(t, "", "annotate", "devicetaintrule", rule.Name, "device-health.io/acknowledge=card replaced")
	b.awaitSaid(t, "Acknowledged", "an operator vouches for the device")
	realcluster.Eventually(t, time.Minute, "the rule is gone", func() error {
		if now := ruleOf(t, b.driver, b.device); now != nil {
			return fmt.Errorf("it is %+v", now)
		}
		return nil
	})
	b.driver.Set(t, b.device, realnode.DRADevice{Health: "Unknown"})
	next := workload.Deployment{Namespace: b.namespace, Name: "next", Replicas: 1, ClaimTemplate: workload.DeviceClass(t, cluster, b.namespace, b.driver.Name)}.Create(t, cluster)[0]
	seen := story.WatchPod(t, cluster, next)
	if device := draDeviceOf(t, next); device != b.device {
		t.Fatalf("it holds %s, not %s", device, b.device)
	}
	awaitHealth(t, next, corev1.ResourceHealthStatusUnknown)
	b.controller.Stays(t, next, 3*time.Second)
	b.heals(t)
	awaitHealth(t, next, corev1.ResourceHealthStatusHealthy)
	b.controller.Stays(t, next, 3*time.Second)
	expectUnspoken(t, next, seen)
	// What the Pod sees itself concerns it.
	b.breaks(t)
	story.AwaitCondition(t, cluster, next, corev1.ConditionTrue)
}
