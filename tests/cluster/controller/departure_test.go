package controller

import (
	"fmt"
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

// patchNode changes a node as an administrator's tool does.
func patchNode(t *testing.T, node, body string, subresources ...string) {
	t.Helper()
	if _, err := cluster.Client.CoreV1().Nodes().Patch(t.Context(), node, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, subresources...); err != nil {
		t.Fatal(err)
	}
}

func setCondition(t *testing.T, node, kind string, status corev1.ConditionStatus) {
	t.Helper()
	patchNode(t, node, fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q,"reason":"Maintenance"}]}}`, kind, status), "status")
}

func TestAPodOnANodeThatIsDrainedOrDueForDeletionIsLeftAloneUntilThatIsCalledOff(t *testing.T) {
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	sick := story.Holder(t, pods, "gpu-0")
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace}.Text()})
	setCondition(t, node.Name, "DrainInProgress", corev1.ConditionTrue)
	awaitLeaving := func(sign string) {
		t.Helper()
		realcluster.Eventually(t, 20*time.Second, "the verdict names "+sign, func() error {
			if verdict := controller.AwaitVerdict(t, sick.Name, "NodeLeaving"); !strings.Contains(verdict.Message, sign) {
				return fmt.Errorf("it says %q", verdict.Message)
			}
			return nil
		})
	}
	// The watch of nodes is another than that of pods.
	realcluster.Eventually(t, 20*time.Second, "the condition stands", func() error {
		now, err := cluster.Client.CoreV1().Nodes().Get(t.Context(), node.Name, metav1.GetOptions{})
		for _, condition := range now.Status.Conditions {
			if condition.Type == "DrainInProgress" && condition.Status == corev1.ConditionTrue {
				return err
			}
		}
		return fmt.Errorf("conditions %v %v", now.Status.Conditions, err)
	})
	node.Break(t, gpu, "gpu-0")
	awaitLeaving("condition DrainInProgress")
	controller.Stays(t, sick, 2*time.Second)
	patchNode(t, node.Name, `{"spec":{"taints":[{"key":"ToBeDeletedByClusterAutoscaler","value":"1700000000","effect":"NoSchedule"}]}}`)
	setCondition(t, node.Name, "DrainInProgress", corev1.ConditionFalse)
	awaitLeaving("taint ToBeDeletedByClusterAutoscaler")
	controller.Stays(t, sick, 2*time.Second)
	patchNode(t, node.Name, `{"spec":{"taints":null}}`)
	story.AwaitReplacement(t, cluster, sick, 2)
	story.ExpectEvictedOnce(t, controller, sick)
}

func TestACordonDelaysAnEvictionByCordonWaitSinceTheTimeOfItsTaint(t *testing.T) {
	const wait = 10 * time.Second
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	sick := story.Holder(t, pods, "gpu-0")
	// No other node has such devices.
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, CordonWait: wait.String(), Full: "{wait: 0s}"}.Text()})
	patchNode(t, node.Name, `{"spec":{"unschedulable":true}}`)
	var added time.Time
	realcluster.Eventually(t, 20*time.Second, "the cordon's taint has a time", func() error {
		now, err := cluster.Client.CoreV1().Nodes().Get(t.Context(), node.Name, metav1.GetOptions{})
		for _, taint := range now.Spec.Taints {
			if taint.Key == corev1.TaintNodeUnschedulable && taint.TimeAdded != nil {
				added = taint.TimeAdded.Time
				return err
			}
		}
		return fmt.Errorf("taints %v %v", now.Spec.Taints, err)
	})
	node.Break(t, gpu, "gpu-0")
	controller.AwaitVerdict(t, sick.Name, "NodeCordoned")
	story.AwaitGone(t, cluster, sick)
	story.ExpectEvictedOnce(t, controller, sick)
	if at := controller.EvictedAt(t, sick); at.Before(added.Add(wait)) {
		t.Errorf("evicted at %s, and cordoned at %s", at, added)
	}
}
