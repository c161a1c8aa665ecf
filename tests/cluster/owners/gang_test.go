package owners

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// together runs a controller whose policy evicts gangs in one move.
func (p place) together(t *testing.T, jobRetry string) story.Run {
	t.Helper()
	policy := dhc.Policy{Namespace: p.namespace, JobRetry: jobRetry, Full: "{wait: 0s}", Together: true}
	return story.Start(t, cluster, dhc.Settings{Policy: policy.Text()})
}

// expectOneMove says that no pod of the gang was evicted twice, that the first to go was the one on the bad device, and that none that came
// after them was evicted.
func expectOneMove(t *testing.T, r story.Run, namespace string, pods []corev1.Pod, sick corev1.Pod) {
	t.Helper()
	story.ExpectEvictedOnce(t, r, sick)
	evicted := 0
	for _, pod := range pods {
		sent := r.Evictions(t, pod)[http.StatusCreated]
		if sent > 1 {
			t.Errorf("pod %s was evicted %d times", pod.Name, sent)
		}
		evicted += sent
		if sent == 1 && r.EvictedAt(t, pod).Before(r.EvictedAt(t, sick)) {
			t.Errorf("pod %s was evicted before the one on the bad device", pod.Name)
		}
	}
	if all := r.EvictedIn(t, namespace); all != evicted {
		t.Errorf("%d pods were evicted, and %d of the gang", all, evicted)
	}
}

func TestAGangOfEightStaysWhileItsBudgetAllowsSevenAndThenGoesInOneMove(t *testing.T) {
	p := newPlaceFor(t, 16)
	pods := workload.Deployment{Namespace: p.namespace, Name: "train", Replicas: 8, Resource: p.gpu,
		PodAnnotations: map[string]string{"device-health.io/gang": "train"}}.Create(t, cluster)
	workload.Budget(t, cluster, p.namespace, "train", 1)
	sick := pods[3]
	controller := p.together(t, "")
	p.breakUnder(t, sick)
	held := controller.AwaitVerdict(t, sick.Name, "BlockedByBudget")
	if !strings.Contains(held.Message, "train allows 7 disruptions, and the 8 pods of gang train that it selects need 8") {
		t.Errorf("it says %s", held.Message)
	}
	for _, pod := range pods {
		if pod.Name != sick.Name {
			controller.AwaitVerdict(t, pod.Name, "GangHeld")
		}
	}
	controller.Stays(t, sick, 3*time.Second)
	for _, pod := range pods {
		story.ExpectUntouched(t, controller, pod)
	}
	workload.AllowDisruptions(t, cluster, p.namespace, "train", 0)
	awaitMembers(t, pods, 0)
	expectOneMove(t, controller, p.namespace, pods, sick)
	for _, pod := range pods {
		story.ExpectEvictedOnce(t, controller, pod)
	}
}

func TestAJobSetOfEightGoesAsAGangAndIsWholeAgain(t *testing.T) {
	p := newPlaceFor(t, 16)
	set := workload.JobSet{Namespace: p.namespace, Name: "train", Parallelism: 8, Resource: p.gpu, FailurePolicy: map[string]any{"maxRestarts": 3}}
	pods := set.Create(t, cluster)
	sick := member(t, pods, indexed("5"))
	controller := p.together(t, "{settle: 6s, whenNotCreditable: Evict}")
	p.breakUnder(t, sick)
	awaitMembers(t, pods, 0)
	expectOneMove(t, controller, p.namespace, pods, sick)
	expectRestarts(t, set, 1, 1)
}

func TestAGroupOfALeaderWorkerSetGoesAsAGangAndIsWholeAgain(t *testing.T) {
	for name, restarts := range map[string]string{"of one that recreates groups itself": "RecreateGroupOnPodRestart", "of one that does not": "None"} {
		t.Run(name, func(t *testing.T) {
			p := newPlaceFor(t, 16)
			pods := workload.LeaderWorkerSet{Namespace: p.namespace, Name: "serve", Size: 8, Resource: p.gpu, RestartPolicy: restarts}.Create(t, cluster)
			sick := member(t, pods, named("serve-0-2"))
			controller := p.together(t, "")
			p.breakUnder(t, sick)
			awaitMembers(t, pods, 0)
			expectOneMove(t, controller, p.namespace, pods, sick)
			if leader := member(t, pods, named("serve-0")); restarts == "None" && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
				return pod.Name != sick.Name && pod.Name != leader.Name && controller.Evictions(t, pod)[http.StatusCreated] == 1
			}) {
				t.Error("no healthy worker was evicted")
			}
		})
	}
}

// The leader's chain does not name the pod that owns the workers: theirs are read as well.
func TestAGroupOfALeaderWorkerSetGoesAsAGangAlsoWhenItsLeaderHoldsTheBadDevice(t *testing.T) {
	p := newPlaceFor(t, 8)
	pods := workload.LeaderWorkerSet{Namespace: p.namespace, Name: "serve", Size: 4, Resource: p.gpu, RestartPolicy: "None"}.Create(t, cluster)
	leader := member(t, pods, named("serve-0"))
	controller := p.together(t, "")
	p.breakUnder(t, leader)
	awaitMembers(t, pods, 0)
	story.ExpectEvictedOnce(t, controller, leader)
}
