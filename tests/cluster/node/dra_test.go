package node

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/realnode"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

func TestADriverKilledAndStartedAgainEvictsNobodyAndEndsNoIncident(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	driver := node.NewDriver(t, realnode.DriverOptions{Devices: 4})
	class := workload.DeviceClass(t, cluster, namespace, driver.Name)
	pods := workload.Deployment{Namespace: namespace, Name: "work", Replicas: 2, ClaimTemplate: class}.Create(t, cluster)
	sick, healthy := pods[0], pods[1]
	var controller story.Run
	if opens := "priority: 10\nafter: 0s\ntaint: {}"; realcluster.Release().Has(realcluster.HealthMessages) {
		// Whatever is not the known fault is evicted at once.
		watchOver(t, namespace, policy{Match: `message: "known fault"`, Rest: opens})
		controller = watchOver(t, namespace, policy{Rest: "after: 0s\nevict: {after: 0s, untainted: true}"})
	} else {
		controller = watchOver(t, namespace, policy{Rest: opens})
	}
	seen, other := story.WatchPod(t, cluster, sick), story.WatchPod(t, cluster, healthy)
	bad := draDeviceOf(t, sick)
	driver.Set(t, bad, realnode.DRADevice{Health: "Unhealthy", Message: "known fault"})
	opened := story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
	awaitTainted(t, driver, bad)
	before := ruleOf(t, driver, bad)
	driver.Kill(t)
	awaitHealth(t, sick, "Unknown")
	awaitHealth(t, healthy, "Unknown")
	driver.AwaitSlices(t, 0)
	driver.Start(t)
	driver.AwaitSlices(t, 1)
	awaitHealth(t, sick, "Unhealthy")
	awaitHealth(t, healthy, "Healthy")
	controller.Stays(t, healthy, 5*time.Second)
	story.ExpectUntouched(t, controller, sick)
	expectOneIncident(t, seen, opened)
	if after := ruleOf(t, driver, bad); after == nil || after.UID != before.UID || after.Generation != before.Generation || after.Annotations["device-health.io/incidents"] != "1" {
		t.Errorf("the rule was %+v and is %+v", before, after)
	}
	for _, version := range other.Versions() {
		if condition := workload.Condition(version.Pod, story.Condition); condition != nil {
			t.Errorf("the pod whose device was only Unknown got %+v", condition)
			break
		}
	}
	story.ExpectEvents(t, cluster, namespace, "DeviceUnhealthy")
}

// expectOneIncident says that our condition has been the same since it was first written, in every version of the Pod.
func expectOneIncident(t *testing.T, seen *story.Watched, opened *corev1.PodCondition) {
	t.Helper()
	began := false
	for _, version := range seen.Versions() {
		now := workload.Condition(version.Pod, story.Condition)
		began = began || now != nil
		if !began {
			continue
		}
		if now == nil || now.Status != corev1.ConditionTrue || !now.LastTransitionTime.Equal(&opened.LastTransitionTime) {
			t.Errorf("the incident did not stay one: at %s the condition was %+v", version.At.Format(time.StampMilli), now)
			return
		}
	}
}

func TestAConditionThatTheDriverWritesIntoTheClaimIsEnough(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	driver := node.NewDriver(t, realnode.DriverOptions{Devices: 4})
	class := workload.DeviceClass(t, cluster, namespace, driver.Name)
	pods := workload.Deployment{Namespace: namespace, Name: "work", Replicas: 2, ClaimTemplate: class}.Create(t, cluster)
	sick, neighbour := pods[0], pods[1]
	bad := draDeviceOf(t, sick)
	controller := watchOver(t, namespace, policy{Match: "health: []\nclaimConditions: [{type: Ready, status: \"False\"}]",
		Rest: "after: 0s\ntaint: {}\nevict: {after: 3s}"})
	seen := story.WatchPod(t, cluster, sick)
	driver.Set(t, bad, realnode.DRADevice{Health: "Healthy", Conditions: []metav1.Condition{{Type: "Ready", Status: "False", Reason: "LinkDown", Message: "no carrier"}},
		Network: &resourcev1.NetworkDeviceData{InterfaceName: "eth1", IPs: []string{"10.9.1.2/24", "fd00::2/64"}, HardwareAddress: "ee:6a:1b:2c:3d:4e"}})
	said := "no carrier; network: eth1 10.9.1.2/24 fd00::2/64 ee:6a:1b:2c:3d:4e"
	if event := story.AwaitEvent(t, cluster, namespace, sick.Name, "DeviceUnhealthy"); !strings.Contains(event.Note, said) {
		t.Errorf("the Event says %q", event.Note)
	}
	for _, pod := range story.AwaitReplacement(t, cluster, sick, 2) {
		if draDeviceOf(t, pod) == bad {
			t.Errorf("%s is on %s again", pod.Name, bad)
		}
	}
	condition := workload.Condition(seen.Last(), story.Condition)
	if condition == nil || condition.Status != corev1.ConditionTrue || !strings.Contains(condition.Message, driver.Name+"/"+node.Name+"/"+bad) ||
		!strings.Contains(condition.Message, said) {
		t.Errorf("the condition on the evicted Pod was %+v", condition)
	}
	expectTaintedBeforeEviction(t, controller, driver, bad, sick)
	story.ExpectEvictedOnce(t, controller, sick)
	story.ExpectUntouched(t, controller, neighbour)
}

func TestTheHoldersOfASharedClaimStayByDefault(t *testing.T) {
	t.Parallel()
	realcluster.Needs(t, realcluster.StandaloneClaimHealth)
	namespace := cluster.Namespace(t)
	driver, pods := sharedByAJob(t, namespace, false)
	controller := watchOver(t, namespace, policy{Rest: "after: 0s\nevict: {after: 0s, untainted: true}"})
	bad, err := allocated(t, namespace, "shared")
	if err != nil {
		t.Fatal(err)
	}
	driver.Set(t, bad, realnode.DRADevice{Health: "Unhealthy", Message: "Xid 79"})
	for _, pod := range pods {
		awaitVerdict(t, controller, time.Minute, pod.Name, "SharedClaim", bad)
	}
	for _, pod := range pods {
		controller.Stays(t, pod, 5*time.Second)
	}
}

func TestTheHoldersOfASharedClaimGoTogetherAndTheClaimIsAllocatedAnew(t *testing.T) {
	t.Parallel()
	realcluster.Needs(t, realcluster.StandaloneClaimHealth)
	namespace := cluster.Namespace(t)
	driver, pods := sharedByAJob(t, namespace, true)
	controller := watchOver(t, namespace, together)
	bad, err := allocated(t, namespace, "shared")
	if err != nil {
		t.Fatal(err)
	}
	freed := watchAllocation(t, namespace, "shared")
	driver.Set(t, bad, realnode.DRADevice{Health: "Unhealthy", Message: "Xid 79"})
	realcluster.Eventually(t, 60*time.Second, "both are evicted", func() error {
		if granted := controller.EvictedIn(t, namespace); granted != 2 {
			return fmt.Errorf("%d evictions", granted)
		}
		return nil
	})
	// Kubernetes frees a claim some time after its last holder has ended, and a replacement that is scheduled before then keeps the claim where it
	// is (the next story's case): these wait at their gate.
	realcluster.Eventually(t, 2*time.Minute, "the claim is free", func() error {
		if devices := freed(); !slices.Contains(devices, "") {
			return fmt.Errorf("it was allocated to %q", devices)
		}
		return nil
	})
	workload.Ungate(t, cluster, namespace, "work", 2)
	// Both in one turn: before the first one's replacement was made.
	after := story.AwaitReplacement(t, cluster, pods[0], 2)
	for _, old := range pods {
		for _, pod := range after {
			if evicted := controller.EvictedAt(t, old); evicted.After(pod.CreationTimestamp.Add(time.Second)) { // in whole seconds, rounded down
				t.Errorf("%s was evicted at %s, %s made at %s", old.Name, evicted, pod.Name, pod.CreationTimestamp)
			}
		}
		story.ExpectEvictedOnce(t, controller, old)
	}
	if device, err := allocated(t, namespace, "shared"); err != nil || device == bad {
		t.Errorf("the claim is on %s (it was on %s), %v", device, bad, err)
	}
}

// watchAllocation writes down which device a claim was allocated to, "" while it was none.
func watchAllocation(t *testing.T, namespace, claim string) func() []string {
	t.Helper()
	stream, err := cluster.Client.ResourceV1().ResourceClaims(namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + claim})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stream.Stop)
	var mutex sync.Mutex
	var devices []string
	go func() {
		for event := range stream.ResultChan() {
			now, ok := event.Object.(*resourcev1.ResourceClaim)
			if !ok {
				continue
			}
			device := ""
			if now.Status.Allocation != nil {
				device = now.Status.Allocation.Devices.Results[0].Device
			}
			mutex.Lock()
			devices = append(devices, device)
			mutex.Unlock()
		}
	}()
	return func() []string {
		mutex.Lock()
		defer mutex.Unlock()
		return slices.Clone(devices)
	}
}

func TestTheClaimOfADeploymentStaysPinnedAndItsPodsAreEvictedOnlyOnce(t *testing.T) {
	t.Parallel()
	realcluster.Needs(t, realcluster.StandaloneClaimHealth)
	namespace := cluster.Namespace(t)
	driver := node.NewDriver(t, realnode.DriverOptions{Devices: 2})
	class := workload.DeviceClass(t, cluster, namespace, driver.Name)
	workload.Claim(t, cluster, namespace, "shared", class)
	pods := workload.Deployment{Namespace: namespace, Name: "work", Replicas: 2, Claim: "shared"}.Create(t, cluster)
	controller := watchOver(t, namespace, together)
	bad, err := allocated(t, namespace, "shared")
	if err != nil {
		t.Fatal(err)
	}
	driver.Set(t, bad, realnode.DRADevice{Health: "Unhealthy", Message: "Xid 79"})
	after := story.AwaitReplacement(t, cluster, pods[0], 2)
	for _, pod := range after {
		awaitVerdict(t, controller, time.Minute, pod.Name, "ClaimStillPinned", bad)
	}
	realcluster.Never(t, 5*time.Minute, "there is no second round", func() error {
		if granted := controller.EvictedIn(t, namespace); granted != 2 {
			return fmt.Errorf("%d evictions were granted", granted)
		}
		time.Sleep(time.Second) // the audit log is long
		return nil
	})
}

var together = policy{Rest: "after: 0s\ntaint: {}\nevict: {after: 0s, sharedClaims: Together}"}

// sharedByAJob is a Job whose two Pods name one claim.
func sharedByAJob(t *testing.T, namespace string, gated bool) (*realnode.Driver, []corev1.Pod) {
	t.Helper()
	driver := node.NewDriver(t, realnode.DriverOptions{Devices: 2})
	class := workload.DeviceClass(t, cluster, namespace, driver.Name)
	workload.Claim(t, cluster, namespace, "shared", class)
	return driver, workload.Job{Namespace: namespace, Name: "work", Parallelism: 2, BackoffLimit: 6, Claim: "shared", Gated: gated}.Create(t, cluster)
}

func TestOfTwoDevicesOfOneRequestTheBadOneIsNamedIfItsNameSaysWhich(t *testing.T) {
	t.Parallel()
	for name, opaque := range map[string]bool{"named": false, "opaque": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := cluster.Namespace(t)
			driver := node.NewDriver(t, realnode.DriverOptions{Devices: 4, OpaqueNames: opaque})
			class := workload.DeviceClassOf(t, cluster, namespace, driver.Name, 2)
			sick := workload.Deployment{Namespace: namespace, Name: "work", Replicas: 1, ClaimTemplate: class}.Create(t, cluster)[0]
			bad := draDeviceOf(t, sick)
			controller := watchOver(t, namespace, policy{Rest: "after: 0s\ntaint: {}\nevict: {after: " + map[bool]string{true: "0s", false: "10m"}[opaque] + "}"})
			driver.Set(t, bad, realnode.DRADevice{Health: "Unhealthy", Message: "Xid 79"})
			condition := story.AwaitCondition(t, cluster, sick, corev1.ConditionTrue)
			if named := strings.Contains(condition.Message, driver.Name+"/"+node.Name+"/"+bad); named == opaque {
				t.Errorf("the condition says %q", condition.Message)
			}
			if opaque {
				awaitVerdict(t, controller, time.Minute, sick.Name, "DeviceAmbiguous", "")
			} else {
				awaitTainted(t, driver, bad)
			}
			controller.Stays(t, sick, 3*time.Second)
			wanted := map[bool][]string{true: nil, false: {bad}}[opaque]
			if devices := tainted(t, driver); !slices.Equal(devices, wanted) {
				t.Errorf("tainted are %v, not %v", devices, wanted)
			}
		})
	}
}
