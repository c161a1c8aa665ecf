package stories

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/device-health-conformance/stage"
)

var reports = []Story{
	{
		ID: "blip", Promise: "A fault that is over after --blip costs nobody a pod.",
		Why: "Drivers report retries, resets and timeouts that pass by themselves.", Source: "NVIDIA/k8s-device-plugin#1333",
		Tell: func(s *stage.Stage) {
			gpu := s.Devices("gpu")
			pod, control := onTwoNodes(s, gpu, 2, stage.Ask{Source: gpu}), s.BeginControl()
			s.Break(pod.Devices...)
			s.Wait(s.Blip)
			s.Heal(pod.Devices...)
			s.AwaitControl(control)
			s.ExpectUntouched("a pod whose device was bad for a moment", pod)
		},
	},
	{
		ID: "flapping", Promise: "A device that breaks three times in a row costs its workload one pod more, at most.",
		Why: "Each time that it says it is well, the next pod gets it, and is lost.", Source: "NVIDIA/NVSentinel#127, arXiv:2410.21680",
		Tell: func(s *stage.Stage) {
			gpu := s.Driver("gpu")
			s.AddNode(stage.Has{Source: gpu, Count: 2})
			s.Deployment(app, 1, stage.Ask{Source: gpu})
			victim := s.Begin(app, 1)[0]
			flapping := victim.Devices[0]
			// How long it says that it is well: somebody slow must be able to give it to a pod.
			well := s.Settle + time.Second
			s.AddNode(stage.Has{Source: gpu, Count: 1}) // a place for who drains the first
			s.Break(flapping)
			s.Taint(flapping, true)
			s.AwaitMoved(victim, 1)
			s.Scale(app, 2) // as many as there are good devices, but for who drained some
			_ = s.Until(2*s.Settle, func() error { return s.Runs(app, 2) })
			for flap := range int32(3) {
				s.Heal(flapping)
				s.Taint(flapping, false)
				s.Wait(well / 2)
				s.Scale(app, 3+flap) // one more, that no scheduler has put off yet
				_ = s.Until(well, func() error { return s.HeldBy(app, flapping) })
				s.Break(flapping)
				s.Taint(flapping, true)
				// Long enough for who acts on it again.
				_ = s.Until(2*s.Settle, func() error {
					if s.HeldBy(app, flapping) == nil {
						return errors.New("a pod has it")
					}
					return nil
				})
			}
			s.ExpectLostAtMost(app, 2, "pods that were given a device that breaks again and again")
		},
	},
	{
		ID: "liar", Required: true, Promise: "When every device of a driver is bad at once, at most half of its pods are evicted.",
		Why: "It is the driver that is wrong, or nothing is gained: there is no good device to go to.", Source: "planetlabs/draino#89, kubernetes-sigs/karpenter#2134",
		Tell: func(s *stage.Stage) {
			gpu := s.Devices("gpu")
			twoNodes(s, gpu, 4)
			s.Deployment(app, 6, stage.Ask{Source: gpu})
			s.Begin(app, 6)
			control := s.BeginControl()
			s.Break(s.All(gpu)...)
			s.AwaitControl(control)
			s.ExpectLostAtMost(app, 3, "pods of a driver that calls all its devices bad")
		},
	},
	{
		ID: "roll-out", Required: true, Promise: "A driver that is replaced, and is Unknown and without slices meanwhile, costs nobody a pod.",
		Why: "Drivers are rolled out over every node, in working hours.", Source: "kubernetes-sigs/dra-driver-nvidia-gpu#1455",
		Tell: func(s *stage.Stage) {
			gpu := s.Devices("gpu")
			twoNodes(s, gpu, 3)
			s.Deployment(app, 4, stage.Ask{Source: gpu})
			s.Begin(app, 4)
			control := s.BeginControl()
			s.Doubt(s.All(gpu)...)
			s.DriverGoes(gpu)
			s.AwaitControl(control)
			s.DriverComes(gpu)
			s.Heal(s.All(gpu)...)
			s.Wait(s.Settle)
			s.ExpectLostAtMost(app, 0, "pods of a driver that was replaced")
		},
	},
}

func optedOut(s *stage.Stage) func(*corev1.PodTemplateSpec) {
	return func(template *corev1.PodTemplateSpec) { template.Annotations[s.OptOutKey] = s.OptOutValue }
}
