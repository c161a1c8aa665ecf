package stories

import (
	"slices"

	"device-health.io/controller/device-health-conformance/stage"
)

var moving = []Story{
	{
		ID: "moves", Required: true, Promise: "A pod whose DRA device is Unhealthy soon runs on a good one.",
		Why: "It hangs on a dead device for hours otherwise: the kubelet reports and does not act.", Source: "kubernetes/kubernetes#60388, KEP-4680",
		Tell: func(s *stage.Stage) { moves(s, s.Driver("gpu")) },
	},
	{
		ID: "moves-plugin", Required: true, Promise: "So does a pod whose device comes from a device plugin.",
		Why: "Most devices are allocated by device plugins still; their health is in the same field.", Source: "kubernetes/kubernetes#92592, NVIDIA/k8s-device-plugin#519",
		Tell: func(s *stage.Stage) { moves(s, s.PluginResource("gpu")) },
	},
	{
		ID: "kept-off", Required: true, Promise: "No new pod gets the bad device.",
		Why: "The scheduler knows of no health: the pod of the next Job breaks on the same device.", Source: "KEP-5055, pytorch/ci-infra#1057",
		Tell: func(s *stage.Stage) {
			gpu := s.Devices("gpu")
			victim := onTwoNodes(s, gpu, 2, stage.Ask{Source: gpu})
			s.Break(victim.Devices...)
			s.AwaitMoved(victim, 1)
			s.Scale(app, 4) // one more than there are good devices
			s.Wait(s.Settle)
			for _, life := range s.Lives(app)[1:] {
				if slices.Contains(life.Devices, victim.Devices[0]) {
					s.Fail("%s got %s, which was known to be bad", life.Pod.Name, victim.Devices[0])
				}
			}
		},
	},
	{
		ID: "several-devices", Required: true, Promise: "A pod with two devices, one of which is bad, runs on two good ones.",
		Why: "Distributed training asks for several devices a pod; one bad device stops all of them.", Source: "KEP-4680",
		Tell: func(s *stage.Stage) {
			gpu := s.Devices("gpu")
			victim := onTwoNodes(s, gpu, 4, stage.Ask{Source: gpu, Count: 2})
			s.Break(victim.Devices[0])
			if moved := s.AwaitMoved(victim, 1); len(moved[0].Devices) != 2 {
				s.Fail("it has %d devices afterwards", len(moved[0].Devices))
			}
		},
	},
}

func moves(s *stage.Stage, gpu *stage.Source) {
	victim := onTwoNodes(s, gpu, 2, stage.Ask{Source: gpu})
	s.Break(victim.Devices...)
	s.AwaitMoved(victim, 1)
}
