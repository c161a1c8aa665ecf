package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
)

func TestAPodOnANodeThatIsDrainedOrDueForDeletionIsLeftAloneUntilThatIsCalledOff(t *testing.T) {
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	sick := story.Holder(t, pods, "gpu-0")
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace}.Text()})
	story.SetNodeCondition(t, cluster, node.Name, "DrainInProgress", corev1.ConditionTrue)
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
	story.PatchNode(t, cluster, node.Name, `{"spec":{"taints":[{"key":"ToBeDeletedByClusterAutoscaler","value":"1700000000","effect":"NoSchedule"}]}}`)
	story.SetNodeCondition(t, cluster, node.Name, "DrainInProgress", corev1.ConditionFalse)
	awaitLeaving("taint ToBeDeletedByClusterAutoscaler")
	controller.Stays(t, sick, 2*time.Second)
	story.PatchNode(t, cluster, node.Name, `{"spec":{"taints":null}}`)
	story.AwaitReplacement(t, cluster, sick, 2)
	story.ExpectEvictedOnce(t, controller, sick)
}

// cordon cordons a node as kubectl does, and waits for the taint of kube-controller-manager, which says since when.
func cordon(t *testing.T, node string) (added time.Time) {
	t.Helper()
	story.PatchNode(t, cluster, node, `{"spec":{"unschedulable":true}}`)
	realcluster.Eventually(t, 20*time.Second, "the cordon's taint has a time", func() error {
		now, err := cluster.Client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		for _, taint := range now.Spec.Taints {
			if taint.Key == corev1.TaintNodeUnschedulable && taint.TimeAdded != nil {
				added = taint.TimeAdded.Time
				return err
			}
		}
		return fmt.Errorf("taints %v %v", now.Spec.Taints, err)
	})
	return added
}

func TestACordonDelaysAnEvictionByCordonWaitSinceTheTimeOfItsTaint(t *testing.T) {
	const wait, late = 10 * time.Second, 30 * time.Second // what a busy machine takes
	node, namespace, pods := fleet(t, cluster, fakenode.Spec{})
	sick, next := story.Holder(t, pods, "gpu-0"), story.Holder(t, pods, "gpu-1")
	// No other node has such devices.
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, CordonWait: wait.String(), Full: "{wait: 0s}"}.Text()})
	added := cordon(t, node.Name)
	node.Break(t, gpu, "gpu-0")
	controller.AwaitVerdict(t, sick.Name, "NodeCordoned")
	story.AwaitGone(t, cluster, sick)
	story.ExpectEvictedOnce(t, controller, sick)
	if at := controller.EvictedAt(t, sick); at.Before(added.Add(wait)) || at.After(added.Add(wait+late)) {
		t.Errorf("evicted at %s, and cordoned at %s", at, added)
	}
	// The cordon stands, and delays nothing any more.
	broke := time.Now()
	node.Break(t, gpu, "gpu-1")
	story.AwaitGone(t, cluster, next)
	story.ExpectEvictedOnce(t, controller, next)
	if at := controller.EvictedAt(t, next); at.After(broke.Add(late)) {
		t.Errorf("the next one was evicted %s after its device broke", at.Sub(broke))
	}
	if err := controller.Says(`"reason":"NodeCordoned"`, `"name":"`+next.Name+`"`); err == nil {
		t.Error("the next one was held by a cordon that is older than cordonWait")
	}
}
