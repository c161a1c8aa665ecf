package stage

import "fmt"

const controlApp = "control"

// BeginControl starts the control of a story that promises that something does not happen. "Nothing happened" means nothing where nobody acts:
// another pod, on a node and a device of its own that breaks for good, must move first.
func (s *Stage) BeginControl() Life {
	source := s.Devices(controlApp)
	s.AddNode(Has{source, 1})
	s.Deployment(controlApp, 1, Ask{Source: source})
	control := s.Begin(controlApp, 1)[0]
	s.AddNode(Has{source, 1})
	return control
}

// AwaitControl breaks the control's device, after all that the story has done, waits until its pod has moved, and then for as long as something wrong may still come.
func (s *Stage) AwaitControl(control Life) {
	s.Break(control.Devices...)
	s.awaitMoved("the control, a pod on another bad device, runs elsewhere (else nothing shows that anybody acts)", control, 1)
	s.Wait(s.Settle)
}

// ExpectLostAtMost ends the story if more pods of a workload were lost.
func (s *Stage) ExpectLostAtMost(app string, most int, who string) {
	if lost := s.Lost(app); len(lost) > most {
		s.Fail("%s: %d lost (%s)", who, len(lost), fmt.Sprint(lost[0].Pod.Name, " first", disruption(lost[0].Pod)))
	}
}
