package main

import (
	"fmt"
	"strconv"

	"device-health.io/controller/bench/peer/standin"
)

// figure is one line of a table.
type figure struct {
	key, title, unit string
	ratio            bool // how the others compare with the first
}

// figures are all lines, in the order of a run.
var figures = []figure{
	{"load_average", "load average at the start of the run", "", false},
	{"other_cpu", "other processes meanwhile", "% of a core", false},
	{"first_list", "start of the process to its first list", "ms", true},
	{"sync", "cold sync, wall", "s", true},
	{"sync_cpu", "cold sync, CPU", "s", true},
	{"server_cpu", "cold sync, CPU of the stand-in", "s", true},
	{"rss", "RSS after the sync", "MB", true},
	{"peak", "peak RSS until then", "MB", true},
	{"quiet_cpu", "CPU while nothing happens", "% of a core", true},
	{"quiet_writes", "writes while nothing happens, Leases apart", "", false},
	{"load_cpu", "CPU under updates", "% of a core", true},
	{"single_p50", "failure to eviction request under updates, p50", "ms", true},
	{"single_p99", "p99", "ms", true},
	{"burst_all", "burst: first failure to last eviction request", "s", true},
	{"burst_p50", "p50", "ms", true},
	{"load_peak", "peak RSS until then", "MB", true},
	{"resync", "resync after 410, wall", "s", true},
	{"resync_cpu", "resync, CPU", "s", true},
	{"resync_rss", "RSS after the resync", "MB", true},
	{"resync_peak", "peak RSS of the resync", "MB", true},
	{"stop", "SIGTERM to exit", "s", true},
	{"reads", "single objects read for each eviction", "", true},
	{"writes", "writes for each eviction, itself included", "", true},
	{"pod_lists", "complete lists of all pods", "", false},
	{"missing", "failures that led to no eviction", "", false},
	{"duplicate", "evictions of pods that were leaving", "", false},
	{"healthy", "evictions of pods with no failed device", "", false},
}

// result is what one run has shown, by the figures' keys.
type result struct {
	contender
	values          map[string]float64
	failed, missing int // failures; those of them that led to no eviction in time
}

func (r *result) set(key string, v float64) { r.values[key] = v }

// tally counts what the stand-in has seen over the whole run.
func (r *result) tally(s standin.Stats) {
	evictions := float64(max(1, s.Evictions["201"]))
	writes, _ := s.Writes()
	r.set("reads", float64(s.Reads())/evictions)
	r.set("writes", float64(writes)/evictions)
	r.set("pod_lists", float64(s.Synced))
	r.set("missing", float64(r.missing))
	r.set("duplicate", float64(s.Evictions["201 duplicate"]))
	r.set("healthy", float64(s.Evictions["201 healthy"]))
}

// correct is whether each failure has led to exactly one eviction.
func (r *result) correct() bool {
	return r.missing == 0 && r.values["duplicate"] == 0 && r.values["healthy"] == 0
}

func (r result) String() (line string) {
	for _, f := range figures {
		line += fmt.Sprintf("%s=%s ", f.key, number(r.values[f.key]))
	}
	return line
}

// number has three digits, or all of a whole number.
func number(v float64) string {
	if v >= 100 || v == float64(int(v)) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
