package stories

import (
	"fmt"
	"slices"
	"time"

	"device-health.io/controller/device-health-conformance/stage"
)

// jobBackOff is how long the Job controller waits before it replaces a pod that failed.
const jobBackOff = 10 * time.Second

var claims = []Story{
	{
		ID: "shared-claim", Promise: "Two pods of a Job that share a claim both leave its bad device, in at most two rounds.",
		Why: "While one pod keeps the claim, its allocation stays: the other's replacement gets the same device, and is evicted, for ever.", Source: "KEP-5055, KEP-4381",
		Tell: func(s *stage.Stage) {
			gpu := s.Driver("gpu")
			twoNodes(s, gpu, 2)
			s.Claim("shared", gpu)
			// A Job waits 10 s before it makes the next pods; a Deployment makes them before the claim can be free.
			s.Job(app, 2, 6, stage.Ask{Source: gpu, Claim: "shared"}, nil)
			bad := s.Begin(app, 2)[0].Devices[0]
			s.Break(bad)
			s.Await(s.ReactWithin+jobBackOff, "both pods of the claim run on a good device", func() error {
				s.ExpectLostAtMost(app, 4, "pods of a claim for one device")
				running := s.Running(app)
				if len(running) != 2 || slices.ContainsFunc(running, func(l stage.Life) bool { return len(l.Devices) == 0 || l.Devices[0] == bad }) {
					return fmt.Errorf("%d run, %d were lost", len(running), len(s.Lost(app)))
				}
				return nil
			})
			s.Wait(s.Settle)
			s.ExpectLostAtMost(app, 4, "pods of a claim for one device")
		},
	},
	{
		ID: "prioritized", Promise: "A pod that would take two devices or one leaves the bad one as well.",
		Why: "The names of its requests differ from those of other claims, and who looks them up finds nothing.", Source: "KEP-4816",
		Tell: func(s *stage.Stage) {
			gpu := s.Driver("gpu")
			victim := onTwoNodes(s, gpu, 4, stage.Ask{Source: gpu, OrMore: true})
			s.Break(victim.Devices[0])
			s.AwaitMoved(victim, 1)
		},
	},
	{
		ID: "extended-resource", Promise: "A pod that asks for DRA devices as an extended resource leaves one that its driver taints.",
		Why: "Its claim is not in its specification, and no kubelet reports its devices' health.", Source: "KEP-5004, kubernetes/kubernetes#141290",
		Tell: func(s *stage.Stage) {
			gpu := s.ExtendedDriver("gpu")
			victim := onTwoNodes(s, gpu, 2, stage.Ask{Source: gpu})
			s.Break(victim.Devices...)
			s.Taint(victim.Devices[0], true)
			s.AwaitMoved(victim, 1)
		},
	},
	{
		ID: "driver-taint", Promise: "A pod leaves a device that its driver taints NoSchedule, and that no kubelet reports.",
		Why: "Half of the drivers report to no kubelet: their taint is the only word.", Source: "KEP-5055, ROCm/k8s-gpu-dra-driver",
		Tell: func(s *stage.Stage) {
			gpu := s.Driver("gpu")
			victim := onTwoNodes(s, gpu, 2, stage.Ask{Source: gpu})
			s.Doubt(s.All(gpu)...)
			s.Taint(victim.Devices[0], true)
			s.AwaitMoved(victim, 1)
		},
	},
	{
		ID: "device-vanishes", Promise: "A pod leaves a device that is Unhealthy and no longer in its driver's slice.",
		Why: "A device that falls off the bus is not listed any more; who looks it up there never finds it.", Source: "kubernetes/enhancements#4680",
		Tell: func(s *stage.Stage) {
			gpu := s.Driver("gpu")
			victim := onTwoNodes(s, gpu, 2, stage.Ask{Source: gpu})
			s.Vanish(victim.Devices[0])
			s.Break(victim.Devices...)
			s.AwaitMoved(victim, 1)
		},
	},
}
