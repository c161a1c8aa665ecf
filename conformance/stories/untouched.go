package stories

import "device-health.io/controller/device-health-conformance/stage"

var untouched = []Story{
	{
		ID: "neighbour", Required: true, Promise: "A pod on a good device of the same node goes on.",
		Why: "Of eight pods on a node one holds the bad device; draining the node kills the other seven.", Source: "NVIDIA/NVSentinel#1903, volcano-sh/volcano#5911",
		Tell: func(s *stage.Stage) {
			gpu := s.Devices("gpu")
			neighbour(s, gpu, stage.Ask{Source: gpu})
		},
	},
	{
		ID: "no-device", Required: true, Promise: "A pod without a device on the same node goes on.",
		Why:  "A node with devices also runs what needs none: data loaders, caches, services.",
		Tell: func(s *stage.Stage) { neighbour(s, s.Devices("gpu"), stage.Ask{}) },
	},
	{
		ID: "node-usable", Required: true, Promise: "A node with one bad device of eight takes new pods on the other seven.",
		Why: "Seven good devices stand idle until somebody repairs the eighth.", Source: "NVIDIA/NVSentinel#1904, kubernetes-sigs/kueue#8828",
		Tell: func(s *stage.Stage) {
			gpu := s.Devices("gpu")
			node := s.AddNode(stage.Has{Source: gpu, Count: 8})
			s.Deployment(app, 1, stage.Ask{Source: gpu})
			victim := s.Begin(app, 1)[0]
			s.AddNode(stage.Has{Source: gpu, Count: 2}) // a place for who drains the first
			s.Break(victim.Devices...)
			s.AwaitMoved(victim, 1)
			s.Deployment("next", 1, stage.Ask{Source: gpu, On: node})
			s.AwaitRunning("a new pod runs on the node's good devices", "next", 1)
		},
	},
	{
		ID: "unknown", Required: true, Promise: "A device whose health is Unknown costs nobody a pod.",
		Why: "Unknown says that nobody has reported: a driver restarts, or has never reported at all.", Source: "KEP-4680",
		Tell: func(s *stage.Stage) {
			gpu := s.Devices("gpu")
			s.AddNode(stage.Has{Source: gpu, Count: 2})
			s.Deployment(app, 1, stage.Ask{Source: gpu})
			pod, control := s.Begin(app, 1)[0], s.BeginControl()
			s.Doubt(pod.Devices...)
			s.AwaitControl(control)
			s.ExpectUntouched("a pod whose device is Unknown", pod)
		},
	},
}

// neighbour of a pod on a bad device, on the same node.
func neighbour(s *stage.Stage, gpu *stage.Source, ask stage.Ask) {
	s.AddNode(stage.Has{Source: gpu, Count: 4})
	s.Deployment(app, 1, stage.Ask{Source: gpu})
	s.Deployment("neighbour", 1, ask)
	victim, pod := s.Begin(app, 1)[0], s.Begin("neighbour", 1)[0]
	s.AddNode(stage.Has{Source: gpu, Count: 4}) // a place for who drains the first
	s.Break(victim.Devices...)
	s.AwaitMoved(victim, 1)
	s.Wait(s.Settle)
	s.ExpectUntouched("a pod that has nothing to do with the bad device", pod)
}
