package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/realnode"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// Job, StatefulSet and Deployment with a DRA device for each Pod.
var draWorkloads = map[string]func(*testing.T, string, string) []corev1.Pod{
	"Deployment": func(t *testing.T, namespace, class string) []corev1.Pod {
		return workload.Deployment{Namespace: namespace, Name: "work", Replicas: 2, ClaimTemplate: class}.Create(t, cluster)
	},
	"Job": func(t *testing.T, namespace, class string) []corev1.Pod {
		return workload.Job{Namespace: namespace, Name: "work", Parallelism: 2, BackoffLimit: 3, ClaimTemplate: class}.Create(t, cluster)
	},
	"StatefulSet": func(t *testing.T, namespace, class string) []corev1.Pod {
		return workload.StatefulSetOf(t, cluster, namespace, "work", 2, workload.OneContainer("", class, ""))
	},
}

func TestThePodOfABrokenDRADeviceMovesToAnotherDeviceIfItsMessageMatches(t *testing.T) {
	t.Parallel()
	realcluster.Needs(t, realcluster.HealthMessages)
	for kind, create := range draWorkloads {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			expectMovedToAnotherDRADevice(t, create, policy{Match: `message: '(?i)\bcritical XID [0-9]+\b|\bGPU is lost\b'`, Rest: taintAndEvict}, true)
		})
	}
}

func TestThePodOfABrokenDRADeviceMovesToAnotherDeviceWhateverItsMessage(t *testing.T) {
	t.Parallel()
	for kind, create := range draWorkloads {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			expectMovedToAnotherDRADevice(t, create, policy{Rest: taintAndEvict}, false)
		})
	}
}

const taintAndEvict = "after: 0s\ntaint: {}\nevict: {after: 0s}"

// expectMovedToAnotherDRADevice breaks the device of one of two Pods; with warm, the other's is Unhealthy too, with other words.
func expectMovedToAnotherDRADevice(t *testing.T, create func(*testing.T, string, string) []corev1.Pod, p policy, warm bool) {
	t.Helper()
	namespace := cluster.Namespace(t)
	driver := node.NewDriver(t, realnode.DriverOptions{Devices: 4})
	pods := create(t, namespace, workload.DeviceClass(t, cluster, namespace, driver.Name))
	sick, neighbour := pods[0], pods[1]
	bad := draDeviceOf(t, sick)
	controller := watchOver(t, namespace, p)
	if warm {
		driver.Set(t, draDeviceOf(t, neighbour), realnode.DRADevice{Health: "Unhealthy", Message: "clocks throttled"})
		awaitHealth(t, neighbour, "Unhealthy")
	}
	driver.Set(t, bad, realnode.DRADevice{Health: "Unhealthy", Message: "critical XID 79 reported by NVML"})
	for _, pod := range story.AwaitReplacement(t, cluster, sick, 2) {
		if device := draDeviceOf(t, pod); pod.UID != neighbour.UID && device == bad {
			t.Errorf("the replacement %s is on %s again", pod.Name, bad)
		}
	}
	expectTaintedBeforeEviction(t, controller, driver, bad, sick)
	if devices := tainted(t, driver); !slices.Equal(devices, []string{bad}) {
		t.Errorf("tainted are %v, not only %s", devices, bad)
	}
	story.ExpectEvictedOnce(t, controller, sick)
	story.ExpectUntouched(t, controller, neighbour)
}

// rules in whatever version this release serves them; their fields are the same.
func rules(t *testing.T) []resourcev1.DeviceTaintRule {
	t.Helper()
	text, err := cluster.Kubectl("", "get", "devicetaintrules", "--output=json")
	var list resourcev1.DeviceTaintRuleList
	if err == nil {
		err = json.Unmarshal([]byte(text), &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// tainted are the driver's devices that rules keep new Pods off, by name.
func tainted(t *testing.T, driver *realnode.Driver) (devices []string) {
	t.Helper()
	for _, rule := range rules(t) {
		selector := rule.Spec.DeviceSelector
		if selector == nil || selector.Driver == nil || selector.Pool == nil || selector.Device == nil {
			t.Errorf("rule %s selects more than one device: %+v", rule.Name, selector)
		} else if *selector.Driver == driver.Name && rule.Spec.Taint.Effect == "NoSchedule" {
			devices = append(devices, *selector.Device)
		}
	}
	slices.Sort(devices)
	return devices
}

// ruleOf is the rule for one device, or nil.
func ruleOf(t *testing.T, driver *realnode.Driver, device string) *resourcev1.DeviceTaintRule {
	t.Helper()
	for _, rule := range rules(t) {
		selector := rule.Spec.DeviceSelector
		if selector != nil && selector.Driver != nil && *selector.Driver == driver.Name && selector.Device != nil && *selector.Device == device {
			return &rule
		}
	}
	return nil
}

func awaitTainted(t *testing.T, driver *realnode.Driver, device string) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, device+" is tainted", func() error {
		if devices := tainted(t, driver); !slices.Contains(devices, device) {
			return fmt.Errorf("tainted are %v", devices)
		}
		return nil
	})
}

// expectTaintedBeforeEviction asks the server's own record: the rule was there before the eviction was asked for.
func expectTaintedBeforeEviction(t *testing.T, controller story.Run, driver *realnode.Driver, device string, sick corev1.Pod) {
	t.Helper()
	evicted := controller.EvictedAt(t, sick)
	if rule := ruleOf(t, driver, device); rule == nil {
		t.Errorf("no rule for %s of %s", device, driver.Name)
	} else if made := rule.CreationTimestamp.Time; made.After(evicted) { // in whole seconds, rounded down
		t.Errorf("the rule was made at %s, the eviction asked for at %s", made, evicted)
	}
}
