package standin

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"sort"
	"sync/atomic"
	"time"
)

// probe follows one pod from its device's failure to its eviction. Times are CLOCK_MONOTONIC, ns; 0: not yet.
type probe struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Batch     int    `json:"batch"`
	Published int64  `json:"published_ns"` // the event is there for watchers to read
	Written   int64  `json:"written_ns"`   // written and flushed to the first watcher
	Received  int64  `json:"received_ns"`  // the eviction request arrived
}

// Fail turns the devices of the next k pods in the seeded order Unhealthy, at once or with a pause after each; it returns
// the batch's number. With a pause it returns before the last has failed.
func (s *Server) Fail(k int, pause time.Duration) (batch int) {
	s.batches++
	batch = s.batches
	ready := map[string][]byte{}
	if pause == 0 {
		ready = s.encodedFailures(k)
	}
	run := func() {
		for start := time.Now(); k > 0 && s.next < len(s.order); s.next++ {
			if s.sicken(s.order[s.next], batch, ready[s.order[s.next]]) {
				k--
				start = start.Add(pause)
				time.Sleep(time.Until(start))
			}
		}
	}
	if pause == 0 {
		run()
	} else {
		go run()
	}
	return batch
}

// encodedFailures makes the protobuf of the next k failures beforehand, so that the events come as fast as for JSON.
func (s *Server) encodedFailures(k int) map[string][]byte {
	ready := map[string][]byte{}
	for _, key := range s.order[s.next:min(s.next+k+k/10, len(s.order))] {
		s.mu.Lock()
		o := s.pods().objs[key]
		s.mu.Unlock()
		if o != nil && o.encoded() != nil {
			if raw := o.turned(false); raw != nil {
				ready[key] = encode(s.pods(), raw)
			}
		}
	}
	return ready
}

// Rate makes r pod updates a second, evenly, for some seconds. They change one condition's time and nothing else.
func (s *Server) Rate(r, seconds float64) {
	rng := rand.New(rand.NewPCG(s.seed, 9))
	s.sent.Store(0)
	for start := time.Now(); float64(s.sent.Load()) < r*seconds; time.Sleep(time.Millisecond) {
		for due := min(r*time.Since(start).Seconds(), r*seconds); float64(s.sent.Load()) < due; s.sent.Add(1) {
			s.heartbeat(rng.IntN(1 << 30))
		}
	}
}

// latency sums up one batch of failed devices in ms: from published (and, for comparison, written) to eviction received.
func (s *Server) latency(batch int, probes bool) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*probe
	var took, wrote []float64
	first, last := int64(0), int64(0)
	for _, p := range s.probes {
		if p.Batch != batch {
			continue
		}
		list = append(list, p)
		if first == 0 || p.Published < first {
			first = p.Published
		}
		wrote = append(wrote, float64(atomic.LoadInt64(&p.Written)-p.Published)/1e6)
		if p.Received > 0 {
			took = append(took, float64(p.Received-p.Published)/1e6)
			last = max(last, p.Received)
		}
	}
	out := map[string]any{"unhealthy": len(list), "evicted": len(took), "first_published_ns": first, "last_received_ns": last}
	quantiles(out, "ms", took)
	quantiles(out, "written_ms", wrote)
	if probes {
		sort.Slice(list, func(i, j int) bool { return list[i].Published < list[j].Published })
		text, _ := json.Marshal(list)
		out["probes"] = json.RawMessage(text)
	}
	return out
}

// quantiles adds p50, p90, p99 and max: the smallest value that so large a part does not exceed.
func quantiles(out map[string]any, name string, v []float64) {
	sort.Float64s(v)
	for q, part := range map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1} {
		if len(v) > 0 {
			out[q+"_"+name] = v[int(math.Ceil(part*float64(len(v))))-1]
		}
	}
}
