package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// byMessage is a policy for one driver's devices in one namespace whose driver says this.
func byMessage(namespace, driver, expression string) string {
	return fmt.Sprintf(`apiVersion: device-health.io/v1alpha1
kind: DeviceHealthPolicy
metadata: {name: by-message}
spec:
  mode: enforce
  match:
    drivers: [%q]
    message: '%s'
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}
  after: 0s
  evict: {after: 0s}
`, driver, expression, namespace)
}

func TestABadDeviceWhoseWordsNoPolicyMatchesIsSeenAndTheRightExpressionEndsThat(t *testing.T) {
	const words = "critical XID 79 reported by NVML"
	namespace := cluster.Namespace(t)
	driver := realcluster.Unique("gpu") + ".example.com"
	node := fakenode.Start(t, cluster, fakenode.Spec{DRA: map[string][]string{driver: {"gpu-0", "gpu-1", "gpu-2"}}})
	template := workload.DeviceClass(t, cluster, namespace, driver)
	sick := workload.Deployment{Namespace: namespace, Name: "train", Replicas: 1, ClaimTemplate: template}.Create(t, cluster)[0]
	device, _ := workload.Device(sick)
	dhc.WriteConfigMap(t, cluster, byMessage(namespace, driver, "Xid (48|79|95)"))
	controller := story.Start(t, cluster, dhc.Settings{})
	controller.AwaitSays(t, "policy covers devices", "by-message", `"devices":3`, `"held":1`)

	node.SetHealth(driver, device[strings.LastIndexByte(device, '/')+1:], "Unhealthy", words)
	verdict := controller.AwaitVerdict(t, sick.Name, "NoPolicy")
	wanted := `no policy matches this Unhealthy device; the nearest is by-message, but its message /Xid (48|79|95)/ does not match "` + words + `"`
	if verdict.Message != wanted || verdict.Policy != "by-message" || !strings.HasPrefix(verdict.Device, driver+"/") {
		t.Errorf("the verdict is %+v", verdict)
	}
	controller.Stays(t, sick, 2*time.Second)
	story.ExpectEvents(t, cluster, namespace)

	dhc.WriteConfigMap(t, cluster, byMessage(namespace, driver, `(?i)\bcritical XID [0-9]+\b|\bGPU is lost\b`))
	controller.AwaitVerdict(t, sick.Name, "DeviceStillSchedulable")
	for _, verdict := range controller.Verdicts(t) {
		if verdict.Subject.Name == sick.Name && verdict.Reason == "NoPolicy" {
			t.Errorf("a policy matches, and still: %s", verdict.Message)
		}
	}
}

func TestAPolicyForNoDeviceOfTheClusterIsWarnedOfAtEachLoad(t *testing.T) {
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	dhc.WriteConfigMap(t, cluster, byMessage(namespace, "gpu.vendor.invalid", "(?i)lost"))
	controller := story.Start(t, cluster, dhc.Settings{})
	controller.AwaitSays(t, "policy covers no device", "by-message", `"level":"warn"`)
	node.Break(t, gpu, "gpu-0")
	sick := story.Holder(t, pods, "gpu-0")
	verdict := controller.AwaitVerdict(t, sick.Name, "NoPolicy")
	if wanted := "no policy matches this Unhealthy device: none names the resource " + gpu; verdict.Message != wanted || verdict.Policy != "" {
		t.Errorf("the verdict is %+v", verdict)
	}
	dhc.WriteConfigMap(t, cluster, dhc.Policy{Namespace: namespace}.Text())
	story.AwaitReplacement(t, cluster, sick, 2)
	story.ExpectEvictedOnce(t, controller, sick)
}
