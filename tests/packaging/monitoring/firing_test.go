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
	"DeviceHealthControllerAbsent":       {`device_health_build_info{version="0.1.0"} 1x20`, 35, `device_health_build_info{version="0.1.0"} 1x20 _x13 1x85`},
	"DeviceHealthNotSynced":              {`device_health_synced{pod="a"} 1x9 0x110`, 15, `device_health_synced{pod="a"} 1x9 0x4 1x105`},
	"DeviceHealthNoLeader":               {`device_health_leader{pod="a",namespace="d"} 1x29 0x90` + "\n" + `device_health_leader{pod="b",namespace="d"} 0x120`, 33, `device_health_leader{pod="a",namespace="d"} 1x29 0x90` + "\n" + `device_health_leader{pod="b",namespace="d"} 0x32 1x87`},
	"DeviceHealthWatchFailing":           {`device_health_watch_state{pod="a",kind="Pod",state="BackingOff"} 0x9 1x110`, 15, `device_health_watch_state{pod="a",kind="Pod",state="Watching"} 1x120` + "\n" + `device_health_watch_state{pod="a",kind="Pod",state="BackingOff"} 0x9 1x4 0x105`},
	"DeviceHealthViewTooOld":             {`device_health_view_age_seconds{kind="Pod",pod="a"} 30x9 0+60x110`, 17, `device_health_view_age_seconds{kind="Pod",pod="a"} 185x120` + "\n" + `device_health_view_age_seconds{kind="Pod",pod="b"} 30x9 310 30x109`},
	"DeviceHealthDataWentBack":           {`device_health_data_went_back_total{kind="Pod",pod="a"} 0x49 1x70`, 50, `device_health_data_went_back_total{kind="Pod",pod="a"} 1x120`},
	"DeviceHealthClockSkew":              {`device_health_server_clock_ahead_seconds{pod="a"} -1x9 -7x110`, 20, `device_health_server_clock_ahead_seconds{pod="a"} 4x120` + "\n" + `device_health_server_clock_ahead_seconds{pod="b"} -1x9 -7x9 -1x100`},
	"DeviceHealthPolicyRejected":         {`device_health_policy_last_reload_success{pod="a"} 1x9 0x110` + "\n" + `device_health_policy_last_reload_success{pod="b"} 1x9 0x110`, 15, `device_health_policy_last_reload_success{pod="a"} 1x9 0x4 1x105`},
	"DeviceHealthDeviceBad":              {`device_health_open_incidents{driver="gpu.example.com",node="n",policy="p",pod="a"} _x10 1x110`, 25, `device_health_open_incidents{driver="gpu.example.com",node="n",policy="p",pod="a"} _x10 1x14 stale` + "\n" + `device_health_open_incidents{driver="gpu.example.com",node="m",policy="p",pod="a"} _x25 1x14 stale`},
	"DeviceHealthDeviceQuarantined":      {`device_health_quarantined_devices{driver="gpu.example.com",node="n",policy="p",pod="a"} _x30 1x90`, 30, `device_health_open_incidents{driver="gpu.example.com",node="n",policy="p",pod="a"} 1x120`},
	"DeviceHealthJobNotCreditable":       {`device_health_verdicts{reason="NotCreditable",policy="p"} _x10 1x110`, 25, `device_health_verdicts{reason="NotCreditable",policy="p"} _x10 1x14 stale` + "\n" + `device_health_verdicts{reason="NotCreditable",policy=""} 0x120`},
	"DeviceHealthJobDiedOfDevice":        {`device_health_verdicts{reason="JobDiedOfDevice",policy="p"} _x30 1x90`, 30, `device_health_verdicts{reason="JobDiedOfDevice",policy=""} 0x120`},
	"DeviceHealthEvictedPodSucceeded":    {`device_health_verdicts{reason="EvictedPodSucceeded",policy="p"} _x30 1x90`, 30, `device_health_verdicts{reason="EvictedPodSucceeded",policy=""} 0x120`},
	"DeviceHealthBrakeEngaged":           {`device_health_brakes_engaged{pod="a"} 0x29 2x90`, 30, `device_health_brakes_engaged{pod="a"} 0x120`},
	"DeviceHealthCapReached":             {`device_health_verdicts{reason="CapReached"} 0x9 1x110`, 25, `device_health_verdicts{reason="CapReached"} 0x9 1x14 0x110`},
	"DeviceHealthPodStuckTerminating":    {`device_health_verdicts{reason="StuckTerminating"} 0x9 1x110`, 15, `device_health_verdicts{reason="StuckTerminating"} 0x9 1x4 0x110`},
	"DeviceHealthEvictionBlocked":        {`device_health_verdicts{reason="BlockedByBudget"} 0x9 1x110`, 70, `device_health_verdicts{reason="BlockedByBudget"} 0x9 1x59 0x110`},
	"DeviceHealthEvictionRefused":        {`device_health_verdicts{reason="Refused"} 0x9 1x4 0 1x104`, 25, `device_health_verdicts{reason="Refused"} 0x9 1x10 0x98`},
	"DeviceHealthPodNotTerminating":      {`device_health_verdicts{reason="NotTerminating"} 0x9 1x110`, 15, `device_health_verdicts{reason="NotTerminating"} 0x9 1 0x109`},
	"DeviceHealthDeviceStillSchedulable": {`device_health_verdicts{reason="DeviceStillSchedulable"} 0x9 1x110`, 40, `device_health_verdicts{reason="DeviceStillSchedulable"} 0x9 1x29 0x110`},
	"DeviceHealthNoPlace":                {`device_health_verdicts{reason="NoReplacementDevice"} 0x9 1x110`, 40, `device_health_verdicts{reason="NoReplacementDevice"} 0x9 1x29 0x110`},
	"DeviceHealthJobHeld":                {`device_health_verdicts{reason="WouldEndJob"} 0x9 1x110`, 40, `device_health_verdicts{reason="WouldEndJob"} 0x9 1x29 0x110`},
	"DeviceHealthOptOutUnknown":          {`device_health_verdicts{reason="OptOutUnknown"} 0x9 1x110`, 25, `device_health_verdicts{reason="OptOutUnknown"} 0x9 1x14 0x110`},
	"DeviceHealthStateFromNewerVersion":  {`device_health_verdicts{reason="StateFromNewerVersion"} 0x9 1x110`, 20, `device_health_verdicts{reason="StateFromNewerVersion"} 0x9 1x9 0x110`},
	"DeviceHealthActionForbidden":        {`device_health_actions_total{action="EvictPod",outcome="Forbidden"} _x55 1x65`, 55, `device_health_actions_total{action="EvictPod",outcome="Forbidden"} 0x120` + "\n" + `device_health_actions_total{action="EvictPod",outcome="Blocked"} _x55 1x65`},
	"DeviceHealthActionsFailing":         {`device_health_actions_total{action="EvictPod",outcome="ok"} 0+1x120` + "\n" + `device_health_actions_total{action="EvictPod",outcome="TimedOut"} 0+2x120`, 16, `device_health_actions_total{action="EvictPod",outcome="ok"} 0+1x120` + "\n" + `device_health_actions_total{action="EvictPod",outcome="Blocked"} 0+9x120`},
	"DeviceHealthReactionSlow":           {`device_health_reaction_seconds_bucket{le="1"} 0+1x120` + "\n" + `device_health_reaction_seconds_bucket{le="5"} 0+2x120` + "\n" + `device_health_reaction_seconds_bucket{le="+Inf"} 0+2x120`, 31, `device_health_reaction_seconds_bucket{le="0.01"} 0+2x120` + "\n" + `device_health_reaction_seconds_bucket{le="1"} 0+2x120` + "\n" + `device_health_reaction_seconds_bucket{le="+Inf"} 0+2x120`},
	"DeviceHealthReporterSilent":         {`device_health_verdicts{reason="SilentPlugin"} 0x9 1x110`, 20, `device_health_verdicts{reason="SilentPlugin"} 0x9 1x9 0x110`},
	"DeviceHealthBadObjects":             {`device_health_bad_objects_total{kind="Pod"} 0x29 3x90`, 30, `device_health_bad_objects_total{kind="Pod"} 3x120`},
}

// minutes that each alert is watched for.
const minutes = 120

// firstFiring is the minute in which Prometheus would say that the alert fires; -1: in none. As its rules do, it asks each minute, and each
// set of labels waits on its own, anew when it was missing once.
func firstFiring(t *testing.T, series string, rule rulefmt.Rule) int {
	t.Helper()
	return firstFiringFrom(t, 0, series, rule)
}

// firstFiringFrom is the same, where nobody looks before that minute.
func firstFiringFrom(t *testing.T, first int, series string, rule rulefmt.Rule) int {
	t.Helper()
	load := "load 1m\n"
	for _, line := range strings.Split("device_health_nothing 0x120\n"+series, "\n") {
		load += "  " + line + "\n"
	}
	store := promqltest.LoadedStorage(t, load)
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	active := map[string]int{} // since which minute
	for minute := first; minute <= minutes; minute++ {
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

func TestWhatIsRefusedFirstIsNewsAndWhatWasCountedBeforePrometheusWasAwayIsNot(t *testing.T) {
	const up = `device_health_build_info{job="d",instance="a"} `
	const refused = `device_health_actions_total{job="d",instance="a",action="EvictPod",outcome="Forbidden"} `
	var rule *rulefmt.Rule
	for _, group := range groups(t).Groups {
		for _, one := range group.Rules {
			if one.Alert == "DeviceHealthActionForbidden" {
				rule = &one
			}
		}
	}
	if rule == nil {
		t.Fatal("there is no such alert")
	}
	for what, one := range map[string]struct {
		numbers  string
		from, at int
	}{
		"Prometheus was away":                               {up + `1x20 _x20 1x80` + "\n" + refused + `1x20 _x20 1x80`, 21, -1},
		"refused in the first minutes of a new pod":         {up + `_x30 1x90` + "\n" + refused + `_x33 1x87`, 0, 33},
		"refused first by a pod that has run":               {up + `1x120` + "\n" + refused + `_x50 1x70`, 0, 50},
		"refused again after a restart within the same pod": {up + `1x120` + "\n" + refused + `1x5 _x25 1x90`, 16, 31},
	} {
		if at := firstFiringFrom(t, one.from, one.numbers, *rule); at != one.at {
			t.Errorf("%s: it fires in minute %d, not %d, under\n%s", what, at, one.at, one.numbers)
		}
	}
}
