package node

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/realnode"
)

const needsRepair = "example.com/NodeNeedsRepair"

// applyForeign writes a condition of a node as our program does: by server-side apply, under a name of its own.
func applyForeign(t *testing.T, machine *realnode.Node) {
	t.Helper()
	at := time.Now().UTC().Format(time.RFC3339)
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q},"status":{"conditions":[{"type":%q,"status":"True",
		"reason":"DeviceHealthHandedOver","message":"gpu-0","lastHeartbeatTime":%q,"lastTransitionTime":%q}]}}`, machine.Name, needsRepair, at, at)
	_, err := cluster.Client.CoreV1().Nodes().Patch(t.Context(), machine.Name, types.ApplyPatchType, []byte(body),
		metav1.PatchOptions{FieldManager: "device-health-hand-over"}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

// statusWritten is when the kubelet last said that the node is Ready, and whether the foreign condition stands.
func statusWritten(t *testing.T, machine *realnode.Node) (at time.Time, stands bool) {
	t.Helper()
	now, err := cluster.Client.CoreV1().Nodes().Get(t.Context(), machine.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range now.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			at = condition.LastHeartbeatTime.Time
		}
		stands = stands || condition.Type == needsRepair && condition.Status == corev1.ConditionTrue && condition.Reason == "DeviceHealthHandedOver"
	}
	return at, stands
}

// The kubelet writes its status when its devices change, and when it starts.
func TestAKubeletKeepsAConditionOfItsNodeThatItDoesNotKnow(t *testing.T) {
	plugin := second.NewPlugin(t, 2)
	plugin.AwaitCapacity(t, 2, 2)
	applyForeign(t, second)
	before, _ := statusWritten(t, second)
	plugin.Set(t, "gpu-0", "Unhealthy")
	plugin.AwaitCapacity(t, 2, 1)
	realcluster.Eventually(t, time.Minute, "the kubelet has written its status, and the condition stands", func() error {
		if wrote, stands := statusWritten(t, second); !wrote.After(before) || !stands {
			return fmt.Errorf("written %s after %s, stands: %t", wrote, before, stands)
		}
		return nil
	})
	before, _ = statusWritten(t, second)
	if err := second.StopKubelet(); err != nil {
		t.Fatal(err)
	}
	if err := second.StartKubelet(); err != nil {
		t.Fatal(err)
	}
	realcluster.Eventually(t, time.Minute, "a kubelet that has started anew has written its status, and the condition stands", func() error {
		if wrote, stands := statusWritten(t, second); !wrote.After(before) || !stands {
			return fmt.Errorf("written %s after %s, stands: %t", wrote, before, stands)
		}
		return nil
	})
	_, err := cluster.Client.CoreV1().Nodes().Patch(t.Context(), second.Name, types.ApplyPatchType,
		fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Node","metadata":{"name":%q},"status":{"conditions":[]}}`, second.Name),
		metav1.PatchOptions{FieldManager: "device-health-hand-over"}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if _, stands := statusWritten(t, second); stands {
		t.Error("an apply that names no condition leaves it")
	}
}
