package owners

import (
	"testing"

	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

func TestAnEvictedPodOfALeaderWorkerSetTakesItsGroupAlongAsTheRestartPolicySays(t *testing.T) {
	for name, test := range map[string]struct {
		sick, policy string
		kept         int
	}{
		"a worker":                           {sick: "serve-0-2", policy: "RecreateGroupOnPodRestart"},
		"the leader":                         {sick: "serve-0", policy: "RecreateGroupOnPodRestart"},
		"a worker of a group that may go on": {sick: "serve-0-1", policy: "None", kept: 3},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			pods := workload.LeaderWorkerSet{Namespace: p.namespace, Name: "serve", Size: 4, Resource: p.gpu, RestartPolicy: test.policy}.Create(t, cluster)
			sick := member(t, pods, named(test.sick))
			controller := p.start(t, "")
			p.breakUnder(t, sick)
			awaitMembers(t, pods, test.kept)
			story.ExpectEvictedOnce(t, controller, sick)
			if evicted := controller.EvictedIn(t, p.namespace); evicted != 1 {
				t.Errorf("%d pods were evicted", evicted)
			}
		})
	}
}
