package monitoring

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// fires: for each alert, numbers by the minute under which it fires, and in which minute first: that of the fault and then the time that the
// alert waits (`for`), as its page says it; and numbers under which it never fires, among them a fault that passes a minute too early.
var fires = map[string]struct {
	due   string
	at    int
	quiet string
}{
	"DeviceHealthControllerAbsent":       {`dhc_build_info{version="0.1.0"} 1x20`, 35, `dhc_build_info{version="0.1.0"} 1x20 _x13 1x85`},
	"DeviceHealthNotSynced":              {`dhc_synced{pod="a"} 1x9 0x110`, 15, `dhc_synced{pod="a"} 1x9 0x4 1x105`},
	"DeviceHealthNoLeader":               {`dhc_leader{pod="a",namespace="d"} 1x29 0x90` + "\n" + `dhc_leader{pod="b",namespace="d"} 0x120`, 33, `dhc_leader{pod="a",namespace="d"} 1x29 0x90` + "\n" + `dhc_leader{pod="b",namespace="d"} 0x32 1x87`},
	"DeviceHealthWatchFailing":           {`dhc_watch_state{pod="a",kind="Pod",state="BackingOff"} 0x9 1x110`, 15, `dhc_watch_state{pod="a",kind="Pod",state="Watching"} 1x120` + "\n" + `dhc_watch_state{pod="a",kind="Pod",state="BackingOff"} 0x9 1x4 0x105`},
	"DeviceHealthViewTooOld":             {`dhc_view_age_seconds{kind="Pod",pod="a"} 30x9 0+60x110`, 17, `dhc_view_age_seconds{kind="Pod",pod="a"} 185x120` + "\n" + `dhc_view_age_seconds{kind="Pod",pod="b"} 30x9 310 30x109`},
	"DeviceHealthDataWentBack":           {`dhc_data_went_back_total{kind="Pod",pod="a"} 0x49 1x70`, 50, `dhc_data_went_back_total{kind="Pod",pod="a"} 1x120`},
	"DeviceHealthClockSkew":              {`dhc_server_clock_ahead_seconds{pod="a"} -1x9 -7x110`, 20, `dhc_server_clock_ahead_seconds{pod="a"} 4x120` + "\n" + `dhc_server_clock_ahead_seconds{pod="b"} -1x9 -7x9 -1x100`},
	"DeviceHealthPolicyRejected":         {`dhc_policy_last_reload_success{pod="a"} 1x9 0x110`, 15, `dhc_policy_last_reload_success{pod="a"} 1x9 0x4 1x105`},
	"DeviceHealthBrakeEngaged":           {`dhc_brakes_engaged{pod="a"} 0x29 2x90`, 30, `dhc_brakes_engaged{pod="a"} 0x120`},
	"DeviceHealthCapReached":             {`dhc_verdicts{reason="CapReached"} 0x9 1x110`, 25, `dhc_verdicts{reason="CapReached"} 0x9 1x14 0x110`},
	"DeviceHealthPodStuckTerminating":    {`dhc_verdicts{reason="StuckTerminating"} 0x9 1x110`, 15, `dhc_verdicts{reason="StuckTerminating"} 0x9 1x4 0x110`},
	"DeviceHealthEvictionBlocked":        {`dhc_verdicts{reason="BlockedByBudget"} 0x9 1x110`, 70, `dhc_verdicts{reason="BlockedByBudget"} 0x9 1x59 0x110`},
	"DeviceHealthEvictionRefused":        {`dhc_verdicts{reason="Refused"} 0x9 1x4 0 1x104`, 25, `dhc_verdicts{reason="Refused"} 0x9 1x10 0x98`},
	"DeviceHealthPodNotTerminating":      {`dhc_verdicts{reason="NotTerminating"} 0x9 1x110`, 15, `dhc_verdicts{reason="NotTerminating"} 0x9 1 0x109`},
	"DeviceHealthDeviceStillSchedulable": {`dhc_verdicts{reason="DeviceStillSchedulable"} 0x9 1x110`, 40, `dhc_verdicts{reason="DeviceStillSchedulable"} 0x9 1x29 0x110`},
	"DeviceHealthNoPlace":                {`dhc_verdicts{reason="NoReplacementDevice"} 0x9 1x110`, 40, `dhc_verdicts{reason="NoReplacementDevice"} 0x9 1x29 0x110`},
	"DeviceHealthJobHeld":                {`dhc_verdicts{reason="WouldEndJob"} 0x9 1x110`, 40, `dhc_verdicts{reason="WouldEndJob"} 0x9 1x29 0x110`},
	"DeviceHealthOptOutUnknown":          {`dhc_verdicts{reason="OptOutUnknown"} 0x9 1x110`, 25, `dhc_verdicts{reason="OptOutUnknown"} 0x9 1x14 0x110`},
	"DeviceHealthStateFromNewerVersion":  {`dhc_verdicts{reason="StateFromNewerVersion"} 0x9 1x110`, 20, `dhc_verdicts{reason="StateFromNewerVersion"} 0x9 1x9 0x110`},
	"DeviceHealthActionForbidden":        {`dhc_actions_total{action="EvictPod",outcome="Forbidden"} 0x54 1x65`, 55, `dhc_actions_total{action="EvictPod",outcome="Forbidden"} 1x120`},
	"DeviceHealthActionsFailing":         {`dhc_actions_total{action="EvictPod",outcome="ok"} 0+1x120` + "\n" + `dhc_actions_total{action="EvictPod",outcome="TimedOut"} 0+2x120`, 16, `dhc_actions_total{action="EvictPod",outcome="ok"} 0+1x120` + "\n" + `dhc_actions_total{action="EvictPod",outcome="Blocked"} 0+9x120`},
	"DeviceHealthReactionSlow":           {`dhc_reaction_seconds_bucket{le="1"} 0+1x120` + "\n" + `dhc_reaction_seconds_bucket{le="5"} 0+2x120` + "\n" + `dhc_reaction_seconds_bucket{le="+Inf"} 0+2x120`, 31, `dhc_reaction_seconds_bucket{le="0.01"} 0+2x120` + "\n" + `dhc_reaction_seconds_bucket{le="1"} 0+2x120` + "\n" + `dhc_reaction_seconds_bucket{le="+Inf"} 0+2x120`},
	"DeviceHealthReporterSilent":         {`dhc_verdicts{reason="SilentPlugin"} 0x9 1x110`, 20, `dhc_verdicts{reason="SilentPlugin"} 0x9 1x9 0x110`},
	"DeviceHealthBadObjects":             {`dhc_bad_objects_total{kind="Pod"} 0x29 3x90`, 30, `dhc_bad_objects_total{kind="Pod"} 3x120`},
}

// minutes that each alert is watched for.
const minutes = 120

// firstFiring is the minute in which Prometheus would say that the alert fires; -1: in none. As its rules do, it asks each minute, and each
// set of labels waits on its own, anew when it was missing once.
func firstFiring(t *testing.T, series string, rule rulefmt.Rule) int {
	t.Helper()
	load := "load 1m\n"
	for _, line := range strings.Split("dhc_nothing 0x120\n"+series, "\n") {
		load += "  " + line + "\n"
	}
	store := promqltest.LoadedStorage(t, load)
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	active := map[string]int{} // since which minute
	for minute := range minutes + 1 {
		now := time.Unix(0, 0).Add(time.Duration(minute) * time.Minute)
		query, err := engine.NewInstantQuery(context.Background(), store, promql.NewPrometheusQueryOpts(false, 0), rule.Expr, now)
		if err != nil {
			t.Fatal(err)
		}
		found, err := query.Exec(context.Background()).Vector()
		if err != nil {
			t.Fatal(err)
		}
		still := map[string]int{}
		for _, sample := range found {
			name := sample.Metric.String()
			since, known := active[name]
			if !known {
				since = minute
			}
			still[name] = since
			if time.Duration(minute-since)*time.Minute >= time.Duration(rule.For) {
				query.Close()
				return minute
			}
		}
		active = still
		query.Close()
	}
	return -1
}

func TestEachAlertFiresWhenItsTimeHasPassedAndNotWhenAllIsWell(t *testing.T) {
	seen := 0
	for _, group := range groups(t).Groups {
		for _, rule := range group.Rules {
			numbers, there := fires[rule.Alert]
			if !there {
				t.Errorf("%s: no numbers are given under which it fires", rule.Alert)
				continue
			}
			seen++
			if at := firstFiring(t, numbers.due, rule); at != numbers.at {
				t.Errorf("%s fires in minute %d, not %d, under\n%s", rule.Alert, at, numbers.at, numbers.due)
			}
			if at := firstFiring(t, numbers.quiet, rule); at >= 0 {
				t.Errorf("%s fires in minute %d under\n%s", rule.Alert, at, numbers.quiet)
			}
		}
	}
	if seen != len(fires) {
		t.Errorf("numbers are given for %d alerts, and there are %d", len(fires), seen)
	}
}
