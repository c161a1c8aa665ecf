package stories

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/device-health-conformance/stage"
)

var jobs = []Story{
	{
		ID: "job-kept", Required: true, Promise: "A Job without a retry left is not ended by the eviction.",
		Why: "An eviction counts as a failure of the Job's pod: backoffLimit 0 ends a week of training for a bad device.", Source: "kubernetes/enhancements#3329, kubernetes/kubernetes#63954",
		Tell: func(s *stage.Stage) {
			gpu := s.Devices("gpu")
			twoNodes(s, gpu, 2)
			s.Job(app, 1, 0, stage.Ask{Source: gpu}, nil)
			victim, control := s.Begin(app, 1)[0], s.BeginControl()
			s.Break(victim.Devices...)
			s.AwaitControl(control)
			s.ExpectJobGoesOn(app)
		},
	},
	{
		ID: "job-moves", Promise: "The pod of a Job without a retry left runs elsewhere, and the Job goes on.",
		Why: "A Job that is only spared keeps its dead device.", Source: "kubernetes-sigs/kueue#11789, kubernetes/kubernetes#17244",
		Tell: func(s *stage.Stage) { jobMoves(s, nil) },
	},
	{
		ID: "job-failure-policy", Required: true, Promise: "A Job whose podFailurePolicy ignores disruptions runs elsewhere, without a failure counted.",
		Why: "Kubernetes' own way to say it works only for who evicts with the condition DisruptionTarget.", Source: "KEP-3329",
		Tell: func(s *stage.Stage) {
			jobMoves(s, func(spec *batchv1.JobSpec) {
				spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionIgnore,
					OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}}}
			})
		},
	},
	{
		ID: "job-parallel", Promise: "Of a Job of three pods only the one on the bad device is replaced, with its index.",
		Why: "Each pod more is work done again, and a retry.", Source: "kubeflow/trainer#2185",
		Tell: func(s *stage.Stage) {
			gpu := s.Devices("gpu")
			s.AddNode(stage.Has{Source: gpu, Count: 6})
			indexed := batchv1.IndexedCompletion
			s.Job(app, 3, 6, stage.Ask{Source: gpu}, func(spec *batchv1.JobSpec) { spec.CompletionMode = &indexed })
			victim := s.Begin(app, 3)[1]
			s.AddNode(stage.Has{Source: gpu, Count: 6})
			s.Break(victim.Devices...)
			one := func() { s.ExpectLostAtMost(app, 1, "pods of a Job of which one device is bad") }
			s.AwaitMovedOr(victim, 3, one)
			s.Wait(s.Settle)
			one()
			if got, want := indexes(s.Running(app)), "0 1 2 "; got != want {
				s.Fail("the indexes %sare running, not %s", got, want)
			}
		},
	},
}

func jobMoves(s *stage.Stage, change func(*batchv1.JobSpec)) {
	gpu := s.Devices("gpu")
	twoNodes(s, gpu, 2)
	s.Job(app, 1, 0, stage.Ask{Source: gpu}, change)
	victim := s.Begin(app, 1)[0]
	s.Break(victim.Devices...)
	s.AwaitMovedOr(victim, 1, func() { s.ExpectJobGoesOn(app) })
	s.ExpectJobGoesOn(app)
}

func indexes(running []stage.Life) (text string) {
	for index := range running {
		for _, life := range running {
			if life.Pod.Annotations[batchv1.JobCompletionIndexAnnotation] == fmt.Sprint(index) {
				text += fmt.Sprint(index, " ")
			}
		}
	}
	return text
}
