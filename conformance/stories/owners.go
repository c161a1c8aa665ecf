package stories

import "device-health.io/controller/device-health-conformance/stage"

var owners = []Story{
	{
		ID: "statefulset", Required: true, Promise: "A StatefulSet's pod comes back under its name, on a good device.",
		Why: "Its name is its identity: rank, volume, peers' addresses.", Source: "https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/",
		Tell: func(s *stage.Stage) {
			gpu := s.Devices("gpu")
			twoNodes(s, gpu, 3)
			s.StatefulSet(app, 2, stage.Ask{Source: gpu})
			victim := s.Begin(app, 2)[0]
			s.Break(victim.Devices...)
			same := 0
			for _, life := range s.AwaitMoved(victim, 2) {
				if life.Pod.Name == victim.Pod.Name {
					same++
				}
			}
			if same != 1 {
				s.Fail("%d pods are called %s afterwards", same, victim.Pod.Name)
			}
		},
	},
	{
		ID: "daemonset", Promise: "A DaemonSet's pod on a bad device is not evicted again and again.",
		Why: "Its replacement is made on the same node at once, whatever is wrong there.", Source: "https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/",
		Tell: func(s *stage.Stage) {
			gpu := s.Devices("gpu")
			node := s.AddNode(stage.Has{Source: gpu, Count: 2})
			s.DaemonSet(app, stage.Ask{Source: gpu, Count: 2, On: node})
			pod, control := s.Begin(app, 1)[0], s.BeginControl()
			s.Break(pod.Devices[0])
			s.AwaitControl(control)
			s.Wait(s.Settle)
			s.ExpectLostAtMost(app, 1, "pods of a DaemonSet")
		},
	},
	{
		ID: "bare-pod", Promise: "A pod without a controller is not killed: nothing would make it again.",
		Why: "Its end is the end of its work; people decide about it.", Source: "kubectl drain, which refuses such pods unless it is forced",
		Tell: func(s *stage.Stage) {
			gpu := s.Devices("gpu")
			s.AddNode(stage.Has{Source: gpu, Count: 2})
			s.Pod(app, stage.Ask{Source: gpu})
			pod, control := s.Begin(app, 1)[0], s.BeginControl()
			s.Break(pod.Devices...)
			s.AwaitControl(control)
			s.ExpectUntouched("a pod without a controller", pod)
		},
	},
	{
		ID: "opted-out", Promise: "A pod that carries the remediator's opt-out (--opt-out) is left alone.",
		Why: "Some work is worth more than its device's health, and only its owner knows.", Source: "kubernetes-sigs/karpenter#2134",
		Tell: func(s *stage.Stage) {
			if s.OptOutKey == "" {
				s.Skip("no --opt-out: the remediator has none, or it was not named")
			}
			gpu := s.Devices("gpu")
			pod, control := onTwoNodes(s, gpu, 2, stage.Ask{Source: gpu, Change: optedOut(s)}), s.BeginControl()
			s.Break(pod.Devices...)
			s.AwaitControl(control)
			s.ExpectUntouched("a pod that opted out", pod)
		},
	},
}
