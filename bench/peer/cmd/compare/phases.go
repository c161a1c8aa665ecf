package main

import (
	"fmt"
	"time"

	"device-health.io/controller/bench/peer/standin"
)

const (
	look      = 50 * time.Millisecond // between two looks at what has happened
	atRest    = 0.5                   // a controller is at rest that uses less than 5 % of a core for so many seconds
	singlesBy = 20 * time.Second      // longest wait for the last of the single evictions
	burstBy   = 120 * time.Second     // the same for a burst
	aftermath = 10 * time.Second      // in which what the first eviction leaves to do is done
)

// trial is one run of one contender.
type trial struct {
	plan
	*lab
	*process
	r result
}

// run measures one contender once.
func (p plan) run(c contender, pods int) (result, error) {
	t := &trial{plan: p, r: result{contender: c, values: map[string]float64{}}}
	t.r.set("load_average", loadAverage())
	var err error
	if t.lab, err = p.newLab(pods, c.protobuf); err != nil {
		return t.r, err
	}
	defer t.close()
	before, err := t.stats()
	if err != nil {
		return t.r, err
	}
	busy, began := allProcesses(), now()
	if t.process, err = start(c, t.Kubeconfig, p.folder); err != nil {
		return t.r, err
	}
	for _, phase := range []func() error{func() error { return t.sync(began, before) }, t.silence, t.load, t.failAtOnce, t.resync} {
		if err := phase(); err != nil {
			t.stop()
			return t.r, err
		}
	}
	after, err := t.stats()
	if err != nil {
		return t.r, err
	}
	mine, _, _ := t.usage()
	t.r.set("other_cpu", (allProcesses()-busy-mine-(after.CPU-before.CPU))/(now()-began)*100)
	t.r.tally(after)
	stopped, err := t.stop()
	t.r.set("stop", stopped)
	return t.r, err
}

// settle waits until all pods have been sent so many times and the controller is at rest; it returns when that began, and the
// CPU that it had used by then.
func (t *trial) settle(lists int64) (at, cpu float64, s standin.Stats, err error) {
	type sample struct{ at, cpu float64 }
	var after []sample
	for deadline := time.Now().Add(t.limit); time.Now().Before(deadline); time.Sleep(look) {
		if err = t.alive(); err != nil {
			return
		}
		if s, err = t.stats(); err != nil {
			return
		}
		if s.Synced < lists || s.Streaming > 0 {
			after = nil
			continue
		}
		c, _, _ := t.usage()
		after = append(after, sample{now(), c})
		for last := after[len(after)-1]; last.at-after[0].at >= atRest; after = after[1:] {
			if last.cpu-after[0].cpu < 0.05*(last.at-after[0].at) {
				return after[0].at, after[0].cpu, s, nil
			}
		}
	}
	return 0, 0, s, fmt.Errorf("not synced within %v; see %s", t.limit, t.log)
}

// busy is how much of one core the controller uses for so long, in percent.
func (t *trial) busy(during time.Duration) float64 {
	a, _, _ := t.usage()
	began := now()
	time.Sleep(during)
	b, _, _ := t.usage()
	return (b - a) / (now() - began) * 100
}

// sync: from the start of the process to a controller at rest that knows all pods.
func (t *trial) sync(began float64, before standin.Stats) error {
	at, cpu, s, err := t.settle(before.Synced + 1)
	if err != nil {
		return err
	}
	_, rss, peak := t.usage()
	t.r.set("first_list", (float64(s.FirstList)/1e9-began)*1000)
	t.r.set("sync", at-began)
	t.r.set("sync_cpu", cpu)
	t.r.set("server_cpu", s.CPU-before.CPU)
	t.r.set("rss", rss)
	t.r.set("peak", peak)
	return t.evicted("first", 1, 1, burstBy)
}

// silence: nothing happens.
func (t *trial) silence() error {
	time.Sleep(aftermath)
	before, err := t.stats()
	if err != nil {
		return err
	}
	t.r.set("quiet_cpu", t.busy(t.quiet))
	after, err := t.stats()
	n, _ := after.Writes()
	was, _ := before.Writes()
	t.r.set("quiet_writes", float64(n-was))
	return err
}

// load: updates that mean nothing, first alone, then with failures one by one.
func (t *trial) load() error {
	if err := t.ask(fmt.Sprintf("/rate?r=%g&s=%g", t.rate, 2*t.plan.load.Seconds()+3)); err != nil {
		return err
	}
	time.Sleep(time.Second)
	t.r.set("load_cpu", t.busy(t.plan.load))
	batch, err := t.unhealthy(t.singles, t.plan.load)
	if err != nil {
		return err
	}
	time.Sleep(t.plan.load + time.Second)
	return t.evicted("single", batch, t.singles, singlesBy)
}

// failAtOnce: many devices fail at the same moment, without load.
func (t *trial) failAtOnce() error {
	time.Sleep(t.rest)
	s, err := t.stats()
	if err != nil {
		return err
	}
	k := min(t.burst, s.Pods/10)
	batch, err := t.unhealthy(k, 0)
	if err != nil {
		return err
	}
	err = t.evicted("burst", batch, k, burstBy)
	_, _, peak := t.usage()
	t.r.set("load_peak", peak)
	return err
}

// resync: all connections are cut and the history is compacted, so that everything must be read again.
func (t *trial) resync() error {
	time.Sleep(2 * time.Second)
	before, err := t.stats()
	if err != nil {
		return err
	}
	cpu, _, _ := t.usage()
	began := now()
	if err := t.ask("/compact"); err != nil {
		return err
	}
	if err := t.ask("/drop"); err != nil {
		return err
	}
	at, used, _, err := t.settle(before.Synced + 1)
	if err != nil {
		return err
	}
	_, rss, peak := t.usage()
	t.r.set("resync", at-began)
	t.r.set("resync_cpu", used-cpu)
	t.r.set("resync_rss", rss)
	t.r.set("resync_peak", peak)
	return nil
}

// evicted waits until each failure of a batch has led to an eviction, or for so long, and records how long that took.
func (t *trial) evicted(phase string, batch, k int, patience time.Duration) error {
	var v map[string]float64
	for deadline := time.Now().Add(patience); ; time.Sleep(look) {
		v = nil
		if err := t.call("GET", fmt.Sprintf("/latency?batch=%d", batch), &v); err != nil {
			return err
		}
		if int(v["evicted"]) >= k || time.Now().After(deadline) {
			break
		}
	}
	t.r.failed += k
	t.r.missing += k - int(v["evicted"])
	t.r.set(phase+"_all", (v["last_received_ns"]-v["first_published_ns"])/1e9)
	for _, q := range []string{"p50", "p99", "max"} {
		t.r.set(phase+"_"+q, v[q+"_ms"])
	}
	return nil
}
