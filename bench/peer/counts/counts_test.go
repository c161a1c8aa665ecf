// Package counts holds our controller to how often it may ask an API server.
package counts

import (
	"testing"

	"device-health.io/controller/bench/peer/standin"
)

const (
	pods  = 500
	burst = 100

	// In renewals of the Lease, which are two seconds apart. The state ConfigMap is written every five seconds at most: when
	// nothing has been written for the eight of `settled`, nothing is left to be written.
	settled = 5
	silence = 3
	more    = 2 // in which a second eviction of a pod would be seen

	writesAnEviction = 2 // the pod's condition, and the eviction
	chargesAWrite    = 2 // evictions that share a write of the state ConfigMap, at least, when many are due
)

func TestEachFailureCostsAnAPIServerAFixedNumberOfRequests(t *testing.T) {
	p := run(t, pods, 1)
	evicted := func(n int) func(standin.Stats) bool {
		return func(s standin.Stats) bool { return s.Evictions["201"] >= n && s.Pods == pods-n }
	}
	start := p.until("the eviction of the pod that was unhealthy from the start", evicted(1))
	lists(t, start, 1)

	before := p.atRest(settled)
	after := p.renewals(silence)
	was, _ := before.Writes()
	if n, _ := after.Writes(); n != was || after.Reads() != before.Reads() {
		t.Errorf("while nothing happens: %d writes, %d reads; counted before %v, after %v", n-was, after.Reads()-before.Reads(), before.Counts, after.Counts)
	}

	p.Fail(burst, 0)
	p.until("the evictions of a burst", evicted(1+burst))
	burned := p.renewals(more)
	once(t, burned, 1+burst)
	bounded(t, before, burned, burst)
	lists(t, burned, 1)

	p.Compact()
	p.Drop()
	p.until("a second complete list", func(s standin.Stats) bool { return s.Synced >= 2 && s.Streaming == 0 })
	end := p.renewals(more)
	lists(t, end, 2)
	once(t, end, 1+burst)
}

// lists holds the complete lists of pods that were asked for, and those that were sent, to a number.
func lists(t *testing.T, s standin.Stats, want int) {
	t.Helper()
	if s.Counts["WATCHLIST pods"] != want || s.Synced != int64(want) {
		t.Errorf("%d complete lists of pods were asked for and %d sent, not %d: %v", s.Counts["WATCHLIST pods"], s.Synced, want, s.Counts)
	}
}

// once: so many evictions, none twice, none of a healthy pod, none refused.
func once(t *testing.T, s standin.Stats, want int) {
	t.Helper()
	if len(s.Evictions) != 1 || s.Evictions["201"] != want || s.Counts["POST pods/eviction"] != want {
		t.Errorf("not each of %d failures has led to exactly one eviction: %v", want, s.Evictions)
	}
}

// bounded holds the reads and writes between two moments to the evictions between them.
func bounded(t *testing.T, before, after standin.Stats, evictions int) {
	t.Helper()
	count := func(what string) int { return after.Counts[what] - before.Counts[what] }
	// The pod, the claim of a DRA device, and the Job whose retry the eviction may cost: each is read once, and nothing else.
	rest := after.Reads() - before.Reads()
	for _, what := range []string{"GET pods", "GET resourceclaims", "GET jobs"} {
		n := count(what)
		rest -= n
		if n > evictions {
			t.Errorf("%d times %s for %d evictions: %v", n, what, evictions, after.Counts)
		}
	}
	if rest > 0 {
		t.Errorf("%d other reads for %d evictions: %v", rest, evictions, after.Counts)
	}
	n, _ := after.Writes()
	was, _ := before.Writes()
	states := count("PATCH configmaps") + count("POST configmaps") + count("PUT configmaps")
	if writes := n - was - states; writes > writesAnEviction*evictions {
		t.Errorf("%d writes for %d evictions, those of the state apart: %v", writes, evictions, after.Counts)
	}
	if states*chargesAWrite > evictions {
		t.Errorf("%d writes of the state for %d evictions: %v", states, evictions, after.Counts)
	}
}
