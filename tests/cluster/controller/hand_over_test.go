package controller

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
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
)

const needsRepair = "example.com/NodeNeedsRepair"

// withHandOver gives our account the right to write conditions of nodes, as the component does, until the test ends.
func withHandOver(t *testing.T) {
	t.Helper()
	component, err := realcluster.RepositoryFile("manifests/components/hand-over/rbac-hand-over.yaml")
	must(t, err)
	if out, err := cluster.Kubectl("", "apply", "-f", component); err != nil {
		t.Fatal(out, err)
	}
	t.Cleanup(func() { _, _ = cluster.Kubectl("", "delete", "-f", component) })
}

func nodeCondition(t *testing.T, node, kind string) (found *corev1.NodeCondition) {
	t.Helper()
	now, err := cluster.Client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	must(t, err)
	for i := range now.Status.Conditions {
		if string(now.Status.Conditions[i].Type) == kind {
			found = &now.Status.Conditions[i]
		}
	}
	return found
}

func awaitNodeCondition(t *testing.T, node, kind string, status corev1.ConditionStatus, reason string) *corev1.NodeCondition {
	t.Helper()
	realcluster.Eventually(t, 30*time.Second, fmt.Sprintf("condition %s of the node is %s", kind, status), func() error {
		if now := nodeCondition(t, node, kind); now == nil || now.Status != status || now.Reason != reason {
			return fmt.Errorf("it is %+v", now)
		}
		return nil
	})
	return nodeCondition(t, node, kind)
}

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
	withHandOver(t)
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	sick := story.Holder(t, pods, "gpu-0")
	controller := story.Start(t, cluster, handingOver(namespace))
	node.Break(t, gpu, "gpu-0")
	stands := awaitNodeCondition(t, node.Name, needsRepair, corev1.ConditionTrue, "DeviceHealthHandedOver")
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
	setCondition(t, node.Name, "example.com/Other", corev1.ConditionTrue)
	controller.Stays(t, sick, 3*time.Second)
	if codes := conditionWrites(t, controller); fmt.Sprint(codes) != "[200]" {
		t.Errorf("writes of conditions: %v", codes)
	}
	patchNode(t, node.Name, fmt.Sprintf(`{"metadata":{"annotations":{"device-health.io/acknowledge":%q}}}`, time.Now().UTC().Format(time.RFC3339)))
	ended := awaitNodeCondition(t, node.Name, needsRepair, corev1.ConditionFalse, "DeviceHealthRecovered")
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
	withHandOver(t)
	node, namespace, _ := fleet(t, cluster, fakenode.Spec{})
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q},"status":{"conditions":[{"type":%q,"status":"False","reason":"AllWell"}]}}`, node.Name, needsRepair)
	_, err := cluster.Client.CoreV1().Nodes().Patch(t.Context(), node.Name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "npd"}, "status")
	must(t, err)
	controller := story.Start(t, cluster, handingOver(namespace))
	node.Break(t, gpu, "gpu-0")
	verdict := controller.AwaitVerdict(t, node.Name, "HandOverHeld")
	if !strings.Contains(verdict.Message, "npd") {
		t.Errorf("the verdict does not name the other: %s", verdict.Message)
	}
	if now := nodeCondition(t, node.Name, needsRepair); now == nil || now.Reason != "AllWell" {
		t.Errorf("the condition is %+v", now)
	}
	if codes := conditionWrites(t, controller); fmt.Sprint(codes) != "[409]" {
		t.Errorf("writes of conditions: %v", codes)
	}
}

func TestWithoutTheComponentForItNoNodeIsHandedOverAndThatIsSaidOnce(t *testing.T) {
	node, namespace, _ := fleet(t, cluster, fakenode.Spec{})
	controller := story.Start(t, cluster, handingOver(namespace))
	node.Break(t, gpu, "gpu-0")
	if verdict := controller.AwaitVerdict(t, node.Name, "HandOverHeld"); !strings.Contains(verdict.Message, "nodes/status") && !strings.Contains(verdict.Message, `"nodes"`) {
		t.Errorf("the verdict does not say what is missing: %s", verdict.Message)
	}
	if codes := conditionWrites(t, controller); fmt.Sprint(codes) != "[403]" {
		t.Errorf("writes of conditions: %v", codes)
	}
}
