package owners

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// grouped is four Pods of one PodGroup, each with a device, on a node that has as many more.
type grouped struct {
	namespace, gpu string
	node           *fakenode.Node
	pods           []corev1.Pod
}

func newGrouped(t *testing.T, mode schedulingv1beta1.DisruptionMode) grouped {
	t.Helper()
	realcluster.Needs(t, realcluster.PodGroups)
	g := grouped{namespace: grouping.Namespace(t), gpu: realcluster.Unique("example.com/gpu")}
	g.node = fakenode.Start(t, grouping, fakenode.Spec{Plugin: map[string][]string{g.gpu: {"gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-5", "gpu-6", "gpu-7"}}, Termination: time.Second})
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "train"}, Spec: schedulingv1beta1.PodGroupSpec{
		SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}, DisruptionMode: &mode}}
	if _, err := grouping.Client.SchedulingV1beta1().PodGroups(g.namespace).Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	g.pods = workload.Deployment{Namespace: g.namespace, Name: "train", Replicas: 4, Resource: g.gpu, PodGroup: "train"}.Create(t, grouping)
	return g
}

func (g grouped) policy(together bool) string {
	return dhc.Policy{Namespace: g.namespace, Full: "{wait: 0s}", Together: together}.Text()
}

func TestNoSinglePodOfAPodGroupThatIsDisruptedAsAWholeGoesAndAllOfThemDoTogether(t *testing.T) {
	g := newGrouped(t, schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}})
	dhc.WriteConfigMap(t, grouping, g.policy(false))
	controller := story.Start(t, grouping, dhc.Settings{})
	sick := g.pods[2]
	g.node.Break(t, g.gpu, story.DeviceOf(t, grouping, sick))
	held := controller.AwaitVerdict(t, sick.Name, "GroupIndivisible")
	if !strings.Contains(held.Message, "PodGroup train is disrupted only as a whole (disruptionMode: all), and 1 of its 4 pods would go") {
		t.Errorf("it says %s", held.Message)
	}
	story.AwaitEvent(t, grouping, g.namespace, sick.Name, "GroupIndivisible")
	controller.Stays(t, sick, 3*time.Second)
	for _, pod := range g.pods {
		story.ExpectUntouched(t, controller, pod)
	}
	dhc.WriteConfigMap(t, grouping, g.policy(true))
	realcluster.Eventually(t, time.Minute, "all four are evicted", func() error {
		for _, pod := range g.pods {
			if controller.Evictions(t, pod)[http.StatusCreated] != 1 {
				return fmt.Errorf("%s is not", pod.Name)
			}
		}
		return nil
	})
	expectOneMove(t, controller, g.namespace, g.pods, sick)
}

func TestAPodOfAPodGroupThatIsDisruptedPodByPodGoesAlone(t *testing.T) {
	g := newGrouped(t, schedulingv1beta1.DisruptionMode{Single: &schedulingv1beta1.SingleDisruptionMode{}})
	dhc.WriteConfigMap(t, grouping, g.policy(false))
	controller := story.Start(t, grouping, dhc.Settings{})
	sick := g.pods[1]
	g.node.Break(t, g.gpu, story.DeviceOf(t, grouping, sick))
	story.AwaitReplacement(t, grouping, sick, 4)
	story.ExpectEvictedOnce(t, controller, sick)
	if all := controller.EvictedIn(t, g.namespace); all != 1 {
		t.Errorf("%d pods were evicted", all)
	}
}
