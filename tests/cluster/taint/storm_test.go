package taint

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// What Kueue's topology-aware scheduling does: it gives each replacement the node again that it has no place on, and ends it.
func TestReplacementsThatAreBoundToANodeWithOurTaintAndEndedAgainAndAgainAreAStormThatIsToldOnce(t *testing.T) {
	node, resource, pods, settings := servers(t)
	namespace := pods[0].Namespace
	controller := story.Start(t, cluster, settings)
	for _, device := range []string{"gpu-0", "gpu-1", "gpu-2"} { // whichever two are held
		node.Break(t, resource, device)
	}
	awaitTaint := func() error {
		if !strings.Contains(shape(t, cluster, node.Name), "device-health.io/unhealthy") {
			return fmt.Errorf("it is %s", shape(t, cluster, node.Name))
		}
		return nil
	}
	realcluster.Eventually(t, 30*time.Second, "the node has our taint", awaitTaint)
	pod := workload.OneContainer(resource, "", "")
	pod.NodeSelector = map[string]string{"kubernetes.io/hostname": node.Name}
	one := int32(1)
	_, err := cluster.Client.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "bound"},
		Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: workload.Labels("bound")},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: workload.Labels("bound")}, Spec: pod}},
	}, metav1.CreateOptions{})
	must(t, err)
	ended := map[string]bool{}
	realcluster.Eventually(t, time.Minute, "six replacements have ended", func() error {
		for _, waiting := range workload.Pods(t, cluster, namespace, "bound") {
			if waiting.Spec.NodeName != "" {
				t.Fatalf("%s was scheduled", waiting.Name)
			}
			if time.Since(waiting.CreationTimestamp.Time) > 2*time.Second { // as long as the other scheduler takes
				must(t, cluster.Client.CoreV1().Pods(namespace).Delete(t.Context(), waiting.Name, metav1.DeleteOptions{}))
				ended[waiting.Name] = true
			}
		}
		if len(ended) < 6 {
			return fmt.Errorf("%d have", len(ended))
		}
		return nil
	})
	said := controller.AwaitVerdict(t, "bound", "ReplacementStorm")
	if !strings.Contains(said.Message, "was bound to node "+node.Name+", which has our taint: no other node would take it") {
		t.Errorf("it says %s", said.Message)
	}
	story.AwaitEvent(t, cluster, namespace, "bound", "ReplacementStorm")
	if lost := controller.Metric(t, "device_health_lost_replacements_total"); lost < 5 || lost > 7 {
		t.Errorf("the metric counts %v", lost)
	}
}
