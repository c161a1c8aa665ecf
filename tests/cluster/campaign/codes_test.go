package campaign

import (
	"fmt"
	"slices"
	"time"
)

// huge is a Retry-After of a day. The controller waits for five minutes at most.
const huge = "86400"

// everyCode answers each of six requests once with each of nine codes and five kinds of Retry-After.
func everyCode([]answer) (faults []fault) {
	for _, one := range []request{{"watch pods", 1}, {"get pods", 1}, {"patch devicetaintrules", 1}, {"patch jobs", 1}, {"create pods/eviction", 1},
		{"patch configmaps device-health-incidents", 1}} {
		for _, code := range []int{401, 403, 409, 422, 429, 500, 502, 503, 504} {
			for _, wait := range []string{"", "0", "1", huge, "-7, or so"} {
				faults = append(faults, fault{request: one, Moment: instead, Answer: &made{code, wait}})
			}
		}
	}
	return faults
}

func fewCodes(f fault, _ int) bool {
	return f.Answer.RetryAfter == "1" && (f.What == "create pods/eviction" && f.Answer.Code == 429 || f.What == "patch jobs" && f.Answer.Code == 503)
}

// asksForPatience says whether the answer tells a client when to come back. Source: RFC 9110 10.2.3 and 15.6.4, RFC 6585 4; client-go waits for 429 and for every 5xx.
func (f fault) asksForPatience() bool {
	return f.Answer != nil && (f.Answer.Code == 429 || f.Answer.Code >= 500)
}

// isLong says whether the story waits longer for this answer than anybody wants to watch.
func (f fault) isLong() bool {
	if f.Answer == nil || f.Answer.RetryAfter != huge {
		return false
	}
	// A watch waits whatever the code; a read before an eviction also after one that makes no sense for it.
	return f.asksForPatience() || f.What == "watch pods" || f.What == "get pods" && f.Answer.Code == 409
}

// held watches for a while that what was answered with a long Retry-After is not asked again, and that meanwhile somebody who looks sees why nothing happens.
func (s *told) held() {
	s.t.Helper()
	s.await("it is struck", func() error {
		if s.on.proxy.struckAt().IsZero() {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	for end := s.on.proxy.struckAt().Add(15 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		s.supervise()
		if waited, asked := s.on.proxy.again(); asked {
			s.t.Errorf("%s: asked again after %s", s.fault, waited.Round(time.Millisecond))
			break
		}
	}
	if s.running.Ready(s.t) != nil { // which says why
		return
	}
	var said []string
	for _, verdict := range s.running.Verdicts(s.t) {
		said = append(said, verdict.Subject.Name)
	}
	if !slices.Contains(said, s.train.Name) && !slices.Contains(said, s.infer.Name) && !slices.Contains(said, s.serve.Name) {
		s.t.Errorf("%s: no verdict tells why nothing happens, only about %v", s.fault, said)
	}
}
