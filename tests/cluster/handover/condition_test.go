package handover

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
)

const needsRepair = "example.com/NodeNeedsRepair"

// conditionWrites are the writes of our account to nodes' statuses.
func conditionWrites(t *testing.T, controller story.Run) (codes []int) {
	t.Helper()
	for _, e := range controller.Writes(t) {
		if e.ObjectRef.Resource == "nodes" && e.ObjectRef.Subresource == "status" {
			codes = append(codes, e.Response.Code)
		}
	}
	return codes
}

func handingOver(namespace string) dhc.Settings {
	return dhc.Settings{Policy: dhc.Policy{Namespace: namespace, NoEvict: true, HandOver: "{incidents: 1, nodeCondition: {type: " + needsRepair + "}}"}.Text()}
}

func TestANodeIsHandedOverByAConditionThatEndsWithTheIncidentAndGoesWithUninstall(t *testing.T) {
	dhc.Apply(t, cluster, dhc.HandOver)
	node, namespace, pods := fleet(t)
	sick := story.Holder(t, pods, "gpu-0")
	controller := story.Start(t, cluster, handingOver(namespace))
	node.Break(t, gpu, "gpu-0")
	stands := story.AwaitNodeCondition(t, cluster, node.Name, needsRepair, corev1.ConditionTrue, "DeviceHealthHandedOver")
	if want := node.Name + "/" + gpu + "/gpu-0: 1 incident within 168h (policy test)"; stands.Message != want || stands.LastTransitionTime.IsZero() {
		t.Errorf("it says %+v, not %q", stands, want)
	}
	controller.AwaitVerdict(t, node.Name, "HandedOver")
	realcluster.Eventually(t, 0, "the metric counts it", func() error {
		if n := controller.Metric(t, "device_health_nodes_handed_over"); n != 1 {
			return fmt.Errorf("it says %v", n)
		}
		return nil
	})
	// Others write the node's status meanwhile: the condition stays, and ours is written once.
	story.SetNodeCondition(t, cluster, node.Name, "example.com/Other", corev1.ConditionTrue)
	controller.Stays(t, sick, 3*time.Second)
	if codes := conditionWrites(t, controller); fmt.Sprint(codes) != "[200]" {
		t.Errorf("writes of conditions: %v", codes)
	}
	acknowledge(t, node.Name)
	ended := story.AwaitNodeCondition(t, cluster, node.Name, needsRepair, corev1.ConditionFalse, "DeviceHealthRecovered")
	if ended.LastTransitionTime.Before(&stands.LastTransitionTime) {
		t.Errorf("it ended at %s and began at %s", ended.LastTransitionTime, stands.LastTransitionTime)
	}
	controller.Kill()
	_, out, problems := dhc.Command(t, "uninstall", "--dry-run", "--kubeconfig", filepath.Join(cluster.Folder, "admin.kubeconfig"))
	if !strings.Contains(out, "would remove condition "+needsRepair+" of Node "+node.Name+"\n") {
		t.Errorf("uninstall would not take it along: %s%s", out, problems)
	}
}

func TestAConditionOfTheSameTypeThatAnotherWritesIsLeftToHim(t *testing.T) {
	dhc.Apply(t, cluster, dhc.HandOver)
	node, namespace, _ := fleet(t)
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q},"status":{"conditions":[{"type":%q,"status":"False","reason":"AllWell"}]}}`, node.Name, needsRepair)
	_, err := cluster.Client.CoreV1().Nodes().Patch(t.Context(), node.Name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "npd"}, "status")
	must(t, err)
	controller := story.Start(t, cluster, handingOver(namespace))
	node.Break(t, gpu, "gpu-0")
	verdict := controller.AwaitVerdict(t, node.Name, "HandOverHeld")
	if !strings.Contains(verdict.Message, "npd") {
		t.Errorf("the verdict does not name the other: %s", verdict.Message)
	}
	if now := story.NodeCondition(t, cluster, node.Name, needsRepair); now == nil || now.Reason != "AllWell" {
		t.Errorf("the condition is %+v", now)
	}
	if codes := conditionWrites(t, controller); fmt.Sprint(codes) != "[409]" {
		t.Errorf("writes of conditions: %v", codes)
	}
}

func TestWithoutTheComponentForItNoNodeIsHandedOverAndThatIsSaidOnce(t *testing.T) {
	node, namespace, _ := fleet(t)
	controller := story.Start(t, cluster, handingOver(namespace))
	node.Break(t, gpu, "gpu-0")
	if verdict := controller.AwaitVerdict(t, node.Name, "HandOverHeld"); !strings.Contains(verdict.Message, "nodes/status") && !strings.Contains(verdict.Message, `"nodes"`) {
		t.Errorf("the verdict does not say what is missing: %s", verdict.Message)
	}
	if codes := conditionWrites(t, controller); fmt.Sprint(codes) != "[403]" {
		t.Errorf("writes of conditions: %v", codes)
	}
}

// The words of Karpenter's provider for AWS and of EKS: a condition that is False when the node is bad.
func TestAQuarantinedDeviceHandsItsNodeOverInTheWordsOfWhoeverRepairsIt(t *testing.T) {
	dhc.Apply(t, cluster, dhc.HandOver)
	node, namespace, pods := fleet(t)
	sick := story.Holder(t, pods, "gpu-0")
	policy := dhc.Policy{Namespace: namespace, NoEvict: true, Taint: "{node: NoSchedule, nodeAtLeast: {devices: 1, percent: 1}}",
		Recover:  "{healthyFor: 1s, hold: 24h, quarantineAbove: 1}",
		HandOver: `{nodeCondition: {type: AcceleratedHardwareReady, unhealthy: "False"}}`}
	controller := story.Start(t, cluster, dhc.Settings{Policy: policy.Text()})
	node.Break(t, gpu, "gpu-0")
	controller.AwaitVerdict(t, node.Name, "Tainted")
	node.SetHealth(gpu, "gpu-0", "Healthy", "")
	must(t, node.PublishStatus(t.Context()))
	awaitNoVerdict(t, controller, node.Name, "Tainted")
	if now := story.NodeCondition(t, cluster, node.Name, "AcceleratedHardwareReady"); now != nil {
		t.Errorf("one incident is no quarantine, and the condition is %+v", now)
	}
	node.Break(t, gpu, "gpu-0")
	bad := story.AwaitNodeCondition(t, cluster, node.Name, "AcceleratedHardwareReady", corev1.ConditionFalse, "DeviceHealthHandedOver")
	if want := node.Name + "/" + gpu + "/gpu-0: quarantined (policy test)"; bad.Message != want {
		t.Errorf("it says %q, not %q", bad.Message, want)
	}
	controller.Stays(t, sick, 3*time.Second)
	acknowledge(t, node.Name)
	story.AwaitNodeCondition(t, cluster, node.Name, "AcceleratedHardwareReady", corev1.ConditionTrue, "DeviceHealthRecovered")
}
