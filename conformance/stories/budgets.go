package stories

import "device-health.io/controller/device-health-conformance/stage"

var budgets = []Story{
	{
		ID: "budget-held", Required: true, Promise: "A PodDisruptionBudget that allows nothing is held, on a bad device too.",
		Why: "Two replicas on bad devices may serve still; none does not.", Source: "kubernetes/kubernetes#126189, kubernetes/enhancements#4987",
		Tell: func(s *stage.Stage) {
			pod, control := budgeted(s)
			s.AwaitControl(control)
			s.ExpectUntouched("a pod whose budget allows no disruption", pod)
		},
	},
	{
		ID: "budget-released", Required: true, Promise: "Once the budget allows it, the pod is moved.",
		Why: "Who gives up after a refusal leaves the pod on the bad device for good.", Source: "kubernetes-sigs/karpenter#2811",
		Tell: func(s *stage.Stage) {
			pod, control := budgeted(s)
			s.AwaitControl(control)
			s.Allow(app, 1)
			s.AwaitMoved(pod, 2)
		},
	},
	{
		ID: "two-budgets", Promise: "A pod of two budgets, which the Eviction API refuses, stays, and holds nobody else up.",
		Why: "The API server answers 500 for such a pod, for ever: a queue that retries its head stands still.", Source: "https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/",
		Tell: func(s *stage.Stage) {
			pod, control := budgeted(s)
			s.Budget("second", app, 0)
			s.AwaitControl(control)
			s.ExpectUntouched("a pod of two budgets", pod)
		},
	},
}

// budgeted is one of two pods that a budget keeps, on a device that is bad from now on.
func budgeted(s *stage.Stage) (pod, control stage.Life) {
	gpu := s.Devices("gpu")
	twoNodes(s, gpu, 4)
	s.Deployment(app, 2, stage.Ask{Source: gpu})
	pod = s.Begin(app, 2)[0]
	control = s.BeginControl()
	s.Budget(app, app, 2)
	s.Break(pod.Devices...)
	return pod, control
}
