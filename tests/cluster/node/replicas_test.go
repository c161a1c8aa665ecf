package node

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// Not beside others: it has a controller with the default brake. By their number, what one dead card takes along would engage it: at least 3 of 8
// replicas are in use, which is more than 30 percent. Of cards it is one.
func TestADeadCardWithReplicasIsOneDeviceForTheBrakeAndEachOfItsPodsGoes(t *testing.T) {
	alone(t)
	namespace := cluster.Namespace(t)
	cards := []string{"GPU-5d1c7d7e-0f4b-4c59-9f0a-6a3f4f1e0001", "GPU-5d1c7d7e-0f4b-4c59-9f0a-6a3f4f1e0002"}
	var replicas []string
	for _, card := range cards {
		for i := range 4 {
			replicas = append(replicas, fmt.Sprintf("%s::%d", card, i)) // as NVIDIA's plugin names them
		}
	}
	plugin := node.NewPluginOf(t, replicas...)
	pods := workload.Deployment{Namespace: namespace, Name: "work", Replicas: 5, Resource: plugin.Resource}.Create(t, cluster)
	on := map[string][]corev1.Pod{}
	for _, pod := range pods {
		card, _, _ := strings.Cut(deviceOf(t, pod), "::")
		on[card] = append(on[card], pod)
	}
	dead, well := cards[0], cards[1]
	if len(on[dead]) < len(on[well]) {
		dead, well = well, dead
	}
	// The other card has room for all but one: the last one goes without a place for its replacement.
	controller := story.Start(t, cluster, dhc.Settings{Policy: dhc.Policy{Namespace: namespace, Full: "{wait: 0s}"}.Text()})
	for i := range 4 {
		plugin.Set(t, fmt.Sprintf("%s::%d", dead, i), "Unhealthy")
	}
	for _, pod := range on[dead] {
		realcluster.Eventually(t, 2*time.Minute, pod.Name+" is evicted", func() error {
			if sent := controller.Evictions(t, pod); sent[http.StatusCreated] == 0 {
				return fmt.Errorf("evictions by answer: %v; it has the verdicts %q", sent, reasonsOf(t, controller, pod.Name))
			}
			return nil
		})
		story.AwaitGone(t, cluster, pod)
		story.ExpectEvictedOnce(t, controller, pod)
	}
	if len(on[dead]) < 3 {
		t.Errorf("only %d Pods were on the card that died", len(on[dead]))
	}
	for _, pod := range on[well] {
		story.ExpectUntouched(t, controller, pod)
	}
	if err := controller.Says(`"reason":"BrakeEngaged"`); err == nil {
		t.Error("the brake was engaged")
	}
}

// reasonsOf are those of a subject's verdicts.
func reasonsOf(t *testing.T, r story.Run, subject string) (reasons []string) {
	t.Helper()
	for _, v := range r.Verdicts(t) {
		if v.Subject.Name == subject {
			reasons = append(reasons, v.Reason)
		}
	}
	return reasons
}
