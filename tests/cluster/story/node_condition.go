package story

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/realcluster"
)

// NodeCondition is the node's condition of that type as the API server has it now; nil: it has none.
func NodeCondition(t *testing.T, cluster *realcluster.ControlPlane, node, kind string) (found *corev1.NodeCondition) {
	t.Helper()
	now, err := cluster.Client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range now.Status.Conditions {
		if string(now.Status.Conditions[i].Type) == kind {
			found = &now.Status.Conditions[i]
		}
	}
	return found
}

// AwaitNodeCondition returns it once it has that status and reason.
func AwaitNodeCondition(t *testing.T, cluster *realcluster.ControlPlane, node, kind string, status corev1.ConditionStatus, reason string) *corev1.NodeCondition {
	t.Helper()
	realcluster.Eventually(t, 30*time.Second, fmt.Sprintf("condition %s of the node is %s", kind, status), func() error {
		if now := NodeCondition(t, cluster, node, kind); now == nil || now.Status != status || now.Reason != reason {
			return fmt.Errorf("it is %+v", now)
		}
		return nil
	})
	return NodeCondition(t, cluster, node, kind)
}

// PatchNode changes a node as an administrator's tool does.
func PatchNode(t *testing.T, cluster *realcluster.ControlPlane, node, body string, subresources ...string) {
	t.Helper()
	if _, err := cluster.Client.CoreV1().Nodes().Patch(t.Context(), node, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, subresources...); err != nil {
		t.Fatal(err)
	}
}

// SetNodeCondition writes a condition of the node as one who maintains it does.
func SetNodeCondition(t *testing.T, cluster *realcluster.ControlPlane, node, kind string, status corev1.ConditionStatus) {
	t.Helper()
	PatchNode(t, cluster, node, fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q,"reason":"Maintenance"}]}}`, kind, status), "status")
}
