package monitoring

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// fires: for each alert, numbers of an hour by the minute under which it is due at the end of the hour, and some under which it is not.
var fires = map[string]struct{ due, quiet string }{
	"DeviceHealthControllerAbsent":       {``, `dhc_build_info{version="0.1.0"} 1x60`},
	"DeviceHealthNotSynced":              {`dhc_synced{pod="a"} 0x60`, `dhc_synced{pod="a"} 0x5 1x55`},
	"DeviceHealthNoLeader":               {`dhc_leader{pod="a",namespace="d"} 1x30 0x30` + "\n" + `dhc_leader{pod="b",namespace="d"} 0x60`, `dhc_leader{pod="a",namespace="d"} 1x30 0x30` + "\n" + `dhc_leader{pod="b",namespace="d"} 0x30 1x30`},
	"DeviceHealthWatchFailing":           {`dhc_watch_state{pod="a",kind="Pod",state="BackingOff"} 1x60`, `dhc_watch_state{pod="a",kind="Pod",state="Watching"} 1x60` + "\n" + `dhc_watch_state{pod="a",kind="Pod",state="BackingOff"} 0x60`},
	"DeviceHealthViewTooOld":             {`dhc_view_age_seconds{kind="Pod",pod="a"} 30x30 0+60x30`, `dhc_view_age_seconds{kind="Pod",pod="a"} 185x60`},
	"DeviceHealthDataWentBack":           {`dhc_data_went_back_total{kind="Pod",pod="a"} 0x50 1x10`, `dhc_data_went_back_total{kind="Pod",pod="a"} 1x60`},
	"DeviceHealthClockSkew":              {`dhc_server_clock_ahead_seconds{pod="a"} -7x60`, `dhc_server_clock_ahead_seconds{pod="a"} 4x60`},
	"DeviceHealthPolicyRejected":         {`dhc_policy_last_reload_success{pod="a"} 1x30 0x30`, `dhc_policy_last_reload_success{pod="a"} 1x60`},
	"DeviceHealthBrakeEngaged":           {`dhc_brakes_engaged{pod="a"} 0x30 2x30`, `dhc_brakes_engaged{pod="a"} 0x60`},
	"DeviceHealthCapReached":             {`dhc_verdicts{reason="CapReached"} 2x60`, `dhc_verdicts{reason="CapReached"} 0x60`},
	"DeviceHealthPodStuckTerminating":    {`dhc_verdicts{reason="StuckTerminating"} 1x60`, `dhc_verdicts{reason="Evicting"} 1x60`},
	"DeviceHealthEvictionBlocked":        {`dhc_verdicts{reason="BlockedByBudget"} 1x60`, `dhc_verdicts{reason="BlockedByBudget"} 1x30 0x30`},
	"DeviceHealthEvictionRefused":        {`dhc_verdicts{reason="Refused"} 1x29 0 1x30`, `dhc_verdicts{reason="Refused"} 1x30 0x30`},
	"DeviceHealthPodNotTerminating":      {`dhc_verdicts{reason="NotTerminating"} 1x60`, `dhc_verdicts{reason="NotTerminating"} 0x60`},
	"DeviceHealthDeviceStillSchedulable": {`dhc_verdicts{reason="DeviceStillSchedulable"} 1x60`, `dhc_verdicts{reason="DeviceStillSchedulable"} 0x60`},
	"DeviceHealthNoPlace":                {`dhc_verdicts{reason="NoReplacementDevice"} 1x60`, `dhc_verdicts{reason="NoReplacementDevice"} 1x30 0x30`},
	"DeviceHealthJobHeld":                {`dhc_verdicts{reason="WouldEndJob"} 1x60`, `dhc_verdicts{reason="WouldEndJob"} 1x30 0x30`},
	"DeviceHealthOptOutUnknown":          {`dhc_verdicts{reason="OptOutUnknown"} 1x60`, `dhc_verdicts{reason="OptOutUnknown"} 1x30 0x30`},
	"DeviceHealthStateFromNewerVersion":  {`dhc_verdicts{reason="StateFromNewerVersion"} 1x60`, `dhc_verdicts{reason="StateFromNewerVersion"} 1x30 0x30`},
	"DeviceHealthActionForbidden":        {`dhc_actions_total{action="EvictPod",outcome="Forbidden"} 0x55 1x5`, `dhc_actions_total{action="EvictPod",outcome="Forbidden"} 1x60`},
	"DeviceHealthActionsFailing": {`dhc_actions_total{action="EvictPod",outcome="ok"} 0+1x60` + "\n" + `dhc_actions_total{action="EvictPod",outcome="TimedOut"} 0+2x60`,
		`dhc_actions_total{action="EvictPod",outcome="ok"} 0+1x60` + "\n" + `dhc_actions_total{action="EvictPod",outcome="Blocked"} 0+9x60`},
	"DeviceHealthReactionSlow": {`dhc_reaction_seconds_bucket{le="1"} 0+1x60` + "\n" + `dhc_reaction_seconds_bucket{le="5"} 0+2x60` + "\n" + `dhc_reaction_seconds_bucket{le="+Inf"} 0+2x60`,
		`dhc_reaction_seconds_bucket{le="0.01"} 0+2x60` + "\n" + `dhc_reaction_seconds_bucket{le="1"} 0+2x60` + "\n" + `dhc_reaction_seconds_bucket{le="+Inf"} 0+2x60`},
	"DeviceHealthReporterSilent": {`dhc_verdicts{reason="SilentPlugin"} 1x60`, `dhc_verdicts{reason="SilentPlugin"} 0x60`},
	"DeviceHealthBadObjects":     {`dhc_bad_objects_total{kind="Pod"} 0x30 3x30`, `dhc_bad_objects_total{kind="Pod"} 3x60`},
}

func holds(t *testing.T, series, expression string) bool {
	t.Helper()
	load := "load 1m\n"
	for _, line := range strings.Split("dhc_nothing 0x60\n"+series, "\n") {
		load += "  " + line + "\n"
	}
	store := promqltest.LoadedStorage(t, load)
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	query, err := engine.NewInstantQuery(context.Background(), store, promql.NewPrometheusQueryOpts(false, 0), expression, time.Unix(0, 0).Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	found, err := query.Exec(context.Background()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	return len(found) > 0
}

func TestEachAlertIsDueWhenItShouldBeAndNotWhenAllIsWell(t *testing.T) {
	seen := 0
	for _, group := range groups(t).Groups {
		for _, rule := range group.Rules {
			numbers, there := fires[rule.Alert]
			if !there {
				t.Errorf("%s: no numbers are given under which it fires", rule.Alert)
				continue
			}
			seen++
			if !holds(t, numbers.due, rule.Expr) {
				t.Errorf("%s does not fire under\n%s", rule.Alert, numbers.due)
			}
			if holds(t, numbers.quiet, rule.Expr) {
				t.Errorf("%s fires under\n%s", rule.Alert, numbers.quiet)
			}
		}
	}
	if seen != len(fires) {
		t.Errorf("numbers are given for %d alerts, and there are %d", len(fires), seen)
	}
}
