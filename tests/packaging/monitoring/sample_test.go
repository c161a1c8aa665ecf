package monitoring

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

// An hour of a cluster, as Prometheus scrapes it every 15 s: 241 numbers a series, of the replica that leads and of its standby. Half an hour of quiet;
// two devices break, one of a DRA driver under a policy that enforces and one of a plugin under another; a third policy observes.
//
// What the program shows from its start begins at 0, and all else with its first event: a counter whose first sample is 1 has never been 0, so
// that Prometheus' increase() does not see this first event. The sample is held to the program in both.
const leading = `
device_health_build_info{version="0.2.0"} 1x240
device_health_synced 1x240
device_health_policy_last_reload_success 1x240
device_health_policy_reloads_total{result="accepted"} 1x219 2x20
device_health_policy_reloads_total{result="rejected"} 0x240
device_health_devices{health="Healthy"} 64x199 62x40
device_health_devices{health="Unhealthy"} 0x199 2x40
device_health_devices{health="Unknown"} 0x199 1x40
device_health_objects{kind="Pod"} 70x240
device_health_objects{kind="ResourceClaim"} 40x240
device_health_brakes_engaged 0x219 2x20
device_health_brakes_half_open 0x229 1x10
device_health_evictions_in_flight 0x219 1x20
device_health_open_incidents{policy="gpus",driver="gpu.example.com",resource="",node="node-a"} _x200 1x40
device_health_open_incidents{policy="nics",driver="",resource="example.com/nic",node="node-b"} _x200 1x40
device_health_quarantined_devices{policy="nics",driver="",resource="example.com/nic",node="node-b"} _x220 1x20
device_health_verdicts{reason="BlockedByBudget",policy=""} 0x240
device_health_verdicts{reason="BlockedByBudget",policy="gpus"} _x210 1x5 stale
device_health_verdicts{reason="Evicted",policy=""} 0x240
device_health_verdicts{reason="Evicted",policy="gpus"} _x216 1x24
device_health_verdicts{reason="WouldEvict",policy=""} 0x240
device_health_verdicts{reason="WouldEvict",policy="trial"} _x205 2x35
device_health_verdicts{reason="ReporterNeverSpoke",policy=""} 0x199 1x40
device_health_actions_total{action="EmitEvent",outcome="ok",policy="",driver="",resource=""} _x200 2x40
device_health_actions_total{action="ApplyRule",outcome="ok",policy="gpus",driver="gpu.example.com",resource=""} _x205 1x35
device_health_actions_total{action="PatchNodeTaint",outcome="ok",policy="nics",driver="",resource="example.com/nic"} _x205 1x35
device_health_actions_total{action="PatchJob",outcome="ok",policy="",driver="",resource=""} _x206 1x34
device_health_actions_total{action="EvictPod",outcome="Blocked",policy="gpus",driver="gpu.example.com",resource=""} _x210 1+1x2 3x27
device_health_actions_total{action="EvictPod",outcome="ok",policy="gpus",driver="gpu.example.com",resource=""} _x216 1x24
device_health_device_seconds_lost_total{cause="unhealthy_held"} 0x199 0+30x16 480x23
device_health_device_seconds_lost_total{cause="kept_off"} 0x215 0+15x24
device_health_device_seconds_lost_total{cause="quarantine"} 0x219 0+15x20
device_health_device_seconds_lost_total{cause="recovering"} 0x240
device_health_device_seconds_lost_total{cause="unhealthy_free"} 0x199 0+15x40
device_health_report_to_notice_seconds_bucket{le="30"} 0x240
device_health_report_to_notice_seconds_bucket{le="60"} 0x204 1x35
device_health_report_to_notice_seconds_bucket{le="+Inf"} 0x204 1x35
device_health_report_to_taint_seconds_bucket{le="60"} 0x240
device_health_report_to_taint_seconds_bucket{le="120"} 0x205 2x34
device_health_report_to_taint_seconds_bucket{le="+Inf"} 0x205 2x34
device_health_report_to_eviction_seconds_bucket{le="120"} 0x240
device_health_report_to_eviction_seconds_bucket{le="300"} 0x216 1x23
device_health_report_to_eviction_seconds_bucket{le="+Inf"} 0x216 1x23
device_health_report_to_replacement_seconds_bucket{le="300"} 0x240
device_health_report_to_replacement_seconds_bucket{le="600"} 0x219 1x20
device_health_report_to_replacement_seconds_bucket{le="+Inf"} 0x219 1x20
device_health_node_incident_interval_seconds_bucket{le="600"} 0x240
device_health_node_incident_interval_seconds_bucket{le="3600"} 0x199 2x40
device_health_node_incident_interval_seconds_bucket{le="21600"} 0x199 4x40
device_health_node_incident_interval_seconds_bucket{le="+Inf"} 0x199 4x40
device_health_reaction_seconds_bucket{le="0.0025"} 0x240
device_health_reaction_seconds_bucket{le="0.005"} 0x209 1x5 2x24
device_health_reaction_seconds_bucket{le="+Inf"} 0x209 1x5 2x24
device_health_retries_credited_total 0x205 1x34
device_health_would_evict_total{policy="trial"} _x205 1x4 2x30
device_health_would_evict_outcomes_total{outcome="recovered",policy="trial"} _x205 0x14 1x20
device_health_would_evict_outcomes_total{outcome="failed",policy="trial"} _x205 0x35
device_health_would_taint_total{policy="trial"} _x205 1x35
device_health_would_credit_total{policy="trial"} _x206 1x34
device_health_would_hand_over_total{policy="trial"} _x206 1x34
device_health_watch_state{kind="Pod",state="Watching"} 1x199 0x1 1x38
device_health_watch_state{kind="Pod",state="BackingOff"} _x200 1x1 0x38
device_health_watch_state{kind="DeviceTaintRule",state="NotServed"} 1x240
device_health_watch_restarts_total{kind="Pod",cause="Silent"} _x200 1x40
device_health_watch_restarts_total{kind="Node",cause="Closed"} _x20 1x99 2x120
device_health_watch_bytes_total{kind="Pod",format="protobuf"} 0+1500x240
device_health_watch_bytes_total{kind="Pod",format="json"} 0x240
device_health_bad_objects_total{kind="Pod"} 0x219 2x20
`

const standingBy = `
device_health_build_info{version="0.1.0"} 1x99 stale
device_health_build_info{version="0.3.0"} _x101 1x139
device_health_synced 0x9 1x230
device_health_policy_last_reload_success 1x240
device_health_devices{health="Healthy"} 64x199 62x40
device_health_devices{health="Unhealthy"} 0x199 2x40
device_health_objects{kind="Pod"} 70x240
device_health_brakes_engaged 0x240
device_health_evictions_in_flight 0x240
device_health_device_seconds_lost_total{cause="unhealthy_held"} 0x240
device_health_watch_bytes_total{kind="Pod",format="protobuf"} 0+1500x240
`

// scraped gives series the labels of their target, as Prometheus does.
func scraped(t *testing.T, job, pod, series string) (lines string) {
	t.Helper()
	for line := range strings.Lines(strings.TrimSpace(series)) {
		found, _, err := parse.ParseSeriesDesc(line)
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all := labels.NewBuilder(found)
		for name, value := range map[string]string{"job": job, "pod": pod, "instance": pod + ":8080", "namespace": job} {
			all.Set(name, value)
		}
		_, numbers, _ := strings.Cut(strings.TrimSpace(line), " ")
		lines += "  " + all.Labels().String() + " " + numbers + "\n"
	}
	return lines
}

// onThePage is a series as the program writes it: labels in the order of the alphabet.
func onThePage(name string, pairs [][]string) string {
	if len(pairs) == 0 {
		return name
	}
	texts := []string{}
	for _, pair := range pairs {
		texts = append(texts, pair[0])
	}
	slices.Sort(texts)
	return name + "{" + strings.Join(texts, ",") + "}"
}

var label = regexp.MustCompile(`(\w+)="([^"]*)"`)

func TestTheSampleIsWhatTheProgramShows(t *testing.T) {
	known, words := documented(t), ""
	for _, source := range []string{"docs/metrics.md", "docs/verdicts.md", "base/error.cc", "k8s-client/protocol/watch_status.cc", "k8s-client/protocol/watch_table.cc", "k8s-client/model/object.cc"} {
		words += read(t, source)
	}
	started := page(t, `device_health_device_seconds_lost_total{cause="unhealthy_held"}`, `device_health_bad_objects_total{kind="Pod"}`)
	for line := range strings.Lines(strings.TrimSpace(leading + standingBy)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		found, numbers, err := parse.ParseSeriesDesc(line)
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		name, names := found.Get(model.MetricNameLabel), []string{}
		// From the text: an empty label is a label of the program, and none of Prometheus.
		pairs := label.FindAllStringSubmatch(line, -1)
		for _, pair := range pairs {
			if pair[1] != "le" {
				names = append(names, pair[1])
			}
			own := []string{"policy", "driver", "resource", "node", "version", "le"} // a cluster's names, and numbers
			if !slices.Contains(own, pair[1]) && !strings.Contains(words, "`"+pair[2]+"`") && !strings.Contains(words, strconv.Quote(pair[2])) {
				t.Errorf("%q is no word of the program: %s", pair[2], line)
			}
		}
		slices.Sort(names)
		all := slices.Sorted(slices.Values(known[name]))
		all = slices.DeleteFunc(all, func(label string) bool { return label == "" || slices.Contains(target, label) })
		if known[name] == nil || !slices.Equal(names, all) {
			t.Errorf("docs/metrics.md does not have %s with just the labels %v", name, names)
		}
		if !strings.HasSuffix(name, "_total") && !strings.HasSuffix(name, "_bucket") {
			continue
		}
		if there := strings.Contains(started, "\n"+onThePage(name, pairs)+" "); there == numbers[0].Omitted {
			t.Errorf("the program shows this from its start: %v; the sample does not agree: %s", there, line)
		}
		for i := 1; i < len(numbers); i++ {
			if !numbers[i-1].Omitted && numbers[i].Value < numbers[i-1].Value {
				t.Errorf("a counter that falls: %s", line)
			}
		}
	}
}
