package stories

import (
	"device-health.io/controller/device-health-conformance/stage"
)

var afterwards = []Story{
	{
		ID: "recovery", Promise: "A device that is well again, by its driver's word, is used again within --recover-within.",
		Why: "A taint that nobody removes is a device that nobody has.", Source: "kubernetes-sigs/dra-driver-nvidia-gpu#1455",
		Tell: func(s *stage.Stage) {
			gpu := s.Driver("gpu")
			s.AddNode(stage.Has{Source: gpu, Count: 2})
			s.Deployment(app, 1, stage.Ask{Source: gpu})
			victim := s.Begin(app, 1)[0]
			s.AddNode(stage.Has{Source: gpu, Count: 1}) // a place for who drains the first
			s.Break(victim.Devices...)
			s.Taint(victim.Devices[0], true)
			s.AwaitMoved(victim, 1)
			s.Heal(victim.Devices...)
			s.Taint(victim.Devices[0], false)
			s.Scale(app, 3) // as many as there are devices
			s.AwaitRunningWithin(s.RecoverWithin, "a pod runs on each device, also on the one that recovered", app, 3)
		},
	},
	{
		ID: "restart", Alone: true, Promise: "A restart of the remediator between fault and reaction loses nothing, and repeats nothing.",
		Why: "It runs on the nodes that break.", Source: "NVIDIA/NVSentinel#450",
		Tell: func(s *stage.Stage) {
			if s.RestartCommand == "" {
				s.Skip("no --restart-command: nobody can restart the remediator")
			}
			gpu := s.Devices("gpu")
			twoNodes(s, gpu, 4)
			s.Deployment(app, 2, stage.Ask{Source: gpu, Takes: slowly})
			victims := s.Begin(app, 2)
			s.AddNode(stage.Has{Source: gpu, Count: 2}) // a place for who drains the others
			s.Break(victims[0].Devices...)
			s.AwaitTold(victims[0])
			s.Break(victims[1].Devices...)
			s.Restart()
			s.AwaitMoved(victims[1], 2)
			s.Wait(s.Settle)
			s.ExpectLostAtMost(app, 2, "pods of two on bad devices")
			if s.Now(victims[0]).Hurried {
				s.Fail("the first pod, which was ending already, was told again")
			}
		},
	},
}
