package stories

import (
	"time"

	"device-health.io/controller/device-health-conformance/stage"
)

// slowly is how long a pod takes to end that needs most of its grace.
const slowly = 6 * time.Second

var ends = []Story{
	{
		ID: "grace", Required: true, Promise: "The pod keeps its terminationGracePeriodSeconds.",
		Why: "It saves its work in that time; a pod whose object is removed may write beside its successor.", Source: "https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination-forced",
		Tell: func(s *stage.Stage) {
			gpu := s.Devices("gpu")
			victim := onTwoNodes(s, gpu, 2, stage.Ask{Source: gpu, Takes: slowly, Grace: 16})
			s.Break(victim.Devices...)
			s.AwaitMoved(victim, 1)
			if now := s.Now(victim); now.Hurried || now.Grace < 16 {
				s.Fail("it was given %d s of its 16 s, or less than that later", now.Grace)
			}
		},
	},
	{
		ID: "terminating", Promise: "A pod that its user has deleted ends in its own time, also on a bad device.",
		Why: "It is leaving anyway; a second deletion can only shorten its grace.", Source: "kubernetes/kubernetes#128979",
		Tell: func(s *stage.Stage) {
			gpu := s.Devices("gpu")
			pod, control := onTwoNodes(s, gpu, 2, stage.Ask{Source: gpu, Takes: 3 * slowly, Grace: 40}), s.BeginControl()
			s.Delete(pod)
			s.Break(pod.Devices...)
			s.AwaitControl(control)
			if s.Now(pod).Hurried {
				s.Fail("its time to end was cut")
			}
		},
	},
	{
		ID: "finished", Promise: "A pod that has finished is neither evicted nor deleted, whatever its last status says of its device.",
		Why: "It holds no device any more; its object is the record of its work.", Source: "KEP-4680: the status stays as it was",
		Tell: func(s *stage.Stage) {
			gpu := s.Devices("gpu")
			s.AddNode(stage.Has{Source: gpu, Count: 2})
			s.Job(app, 1, 0, stage.Ask{Source: gpu}, nil)
			pod, control := s.Begin(app, 1)[0], s.BeginControl()
			s.Break(pod.Devices...)
			s.Wait(s.Blip) // so that everybody has seen it, and nobody has acted
			s.ExpectUntouched("a pod whose device was bad for no longer than --blip", pod)
			s.Complete(pod)
			pod = s.Now(pod)
			s.AwaitControl(control)
			s.ExpectUntouched("a pod that had finished", pod)
		},
	},
}
