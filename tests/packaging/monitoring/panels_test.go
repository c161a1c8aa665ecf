package monitoring

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
)

// stretched is what increase() makes of one event in the 45 s between the four samples of a minute, for the minute.
const stretched = 60. / 45

// draws: what each panel shows of the sample's hour, by legend: of a stat the last number, of curves the largest.
var draws = map[string]map[string]float64{
	"Unhealthy devices":              {"": 2},
	"Brakes engaged":                 {"engaged": 2, "half-open": 1},
	"Evictions in flight":            {"": 1},
	"Synced":                         {"": 1},
	"Configuration accepted":         {"": 1},
	"Versions":                       {"0.2.0": 1, "0.3.0": 1},
	"Bad devices by driver and node": {"gpu.example.com on node-a": 1, "example.com/nic on node-b": 1},
	"What needs an operator":         {"quarantined devices": 1, "BlockedByBudget": 1},
	"Steps by policy": {
		"ApplyRule gpus gpu.example.com": 1, "EvictPod gpus gpu.example.com": 1, "PatchNodeTaint nics example.com/nic": 1, "PatchJob  ": 1,
	},
	"Verdicts by policy":                        {"gpus": 1, "trial": 2},
	"Devices lost, by cause":                    {"unhealthy_held": 2, "kept_off": 1, "quarantine": 1, "recovering": 0, "unhealthy_free": 1},
	"Device-hours lost in 24 hours":             {"unhealthy_held": 480. / 3600, "kept_off": 360. / 3600, "quarantine": 300. / 3600, "recovering": 0, "unhealthy_free": 600. / 3600},
	"From report to each step, 90th percentile": {"notice": 57, "taint": 114, "eviction": 282, "replacement runs": 570},
	"Predictions beside outcomes, 24 hours": {
		"would evict: trial": 2, "would taint: trial": 1, "would give back: trial": 1, "would hand over: trial": 1, "recovered": 1, "failed": 0,
	},
	"Time between incidents of a node":       {"a quarter is below": 600 + 3000./2, "half is below": 3600},
	"Retries given back to Jobs in 24 hours": {"retries": 1},
	"Devices by health":                      {"Healthy": 64, "Unhealthy": 2, "Unknown": 1},
	"Verdicts":                               {"BlockedByBudget": 1, "Evicted": 1, "WouldEvict": 2, "ReporterNeverSpoke": 1},
	"Actions that succeeded":                 {"EmitEvent": 2, "ApplyRule": 1, "PatchNodeTaint": 1, "PatchJob": 1, "EvictPod": 1},
	"Actions that failed":                    {"EvictPod Blocked": 3},
	"From report to eviction request":        {"p50": 0.00375, "p90": 0.00475, "p99": 0.004975},
	"Objects in memory":                      {"Pod": 70, "ResourceClaim": 40},
	"Objects that could not be read":         {"Pod": 2},
	"Watches not watching":                   {"Pod BackingOff": 1},
	"Lists and watches that ended":           {"Silent": 1, "Closed": stretched},
	"Received from the API server":           {"Pod": 200},
	"Configurations read":                    {"accepted": stretched, "rejected": 0},
}

// filledIn is an expression as Grafana sends it: the window is four scrapes, and the jobs are those that are chosen.
func filledIn(expression, jobs string) string {
	return strings.NewReplacer("$__rate_interval", "1m0s", "$job", jobs).Replace(expression)
}

// screen is what a panel is looked at with: a store, the jobs that are chosen, and the time that is shown.
type screen struct {
	engine *promql.Engine
	store  storage.Storage
	jobs   string
	from   time.Duration
	to     time.Duration
}

func screenOver(t *testing.T, interval, series string, from, to time.Duration) screen {
	t.Helper()
	return screen{promqltest.NewTestEngine(t, false, 0, 1_000_000), promqltest.LoadedStorage(t, "load "+interval+"\n"+series), "ours", from, to}
}

var placeholder = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// shows is what Grafana draws of a panel, in the form of `draws`. A query without an answer is a mistake, and so are curves that their legends do not
// tell apart.
func (s screen) shows(panel panel) (map[string]float64, error) {
	found := map[string]float64{}
	for _, target := range panel.Targets {
		from := s.from
		if target.Instant {
			from = s.to
		}
		asked, err := s.engine.NewRangeQuery(context.Background(), s.store, promql.NewPrometheusQueryOpts(false, 0), filledIn(target.Expr, s.jobs), time.Unix(0, 0).Add(from), time.Unix(0, 0).Add(s.to), 15*time.Second)
		if err != nil {
			return nil, err
		}
		defer asked.Close()
		curves, err := asked.Exec(context.Background()).Matrix()
		if err != nil {
			return nil, err
		}
		if len(curves) == 0 {
			return nil, fmt.Errorf("there is no answer to %s", target.Expr)
		}
		for _, curve := range curves {
			legend := placeholder.ReplaceAllStringFunc(target.LegendFormat, func(name string) string {
				return curve.Metric.Get(placeholder.FindStringSubmatch(name)[1])
			})
			if _, twice := found[legend]; twice || (strings.TrimSpace(legend) == "" && curve.Metric.Len() > 0) {
				return nil, fmt.Errorf("legend %q does not tell which curve %s is", legend, curve.Metric)
			}
			found[legend] = math.NaN()
			for _, point := range curve.Floats {
				if panel.Type == "stat" || (!math.IsNaN(point.F) && !(point.F <= found[legend])) {
					found[legend] = point.F
				}
			}
		}
	}
	return found, nil
}

// differs is how far a panel is from what it should show; empty: it is not.
func (s screen) differs(panel panel) string {
	shown, err := s.shows(panel)
	if err != nil {
		return err.Error()
	}
	if !maps.EqualFunc(shown, draws[panel.Title], func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
		return fmt.Sprintf("it shows\n%v, not\n%v", shown, draws[panel.Title])
	}
	// Of a single value with a name Grafana shows the value alone, if it is not told otherwise.
	isNamed := slices.ContainsFunc(panel.Targets, func(one query) bool { return placeholder.MatchString(one.LegendFormat) })
	if panel.Type == "stat" && isNamed && panel.Options.TextMode != "value_and_name" {
		return "it hides the name of a single value"
	}
	return ""
}

func theHour(t *testing.T) screen {
	t.Helper()
	return screenOver(t, "15s", scraped(t, "ours", "a", leading)+scraped(t, "ours", "b", standingBy)+scraped(t, "others", "c", leading), 0, time.Hour)
}

const boardFile = "manifests/components/dashboard/device-health.json"

func TestEveryPanelShowsWhatHasHappened(t *testing.T) {
	hour, seen := theHour(t), 0
	for _, panel := range decoded(t, read(t, boardFile)).Panels {
		if _, there := draws[panel.Title]; !there {
			t.Errorf("panel %q: it is not said what it should show", panel.Title)
			continue
		}
		seen++
		if difference := hour.differs(panel); difference != "" {
			t.Errorf("panel %q: %s", panel.Title, difference)
		}
		for _, jobs := range []string{"(ours|others)", ".*"} { // as Grafana writes two of them, and all
			both := hour
			both.jobs = jobs
			if shown, err := both.shows(panel); err != nil || len(shown) != len(draws[panel.Title]) {
				t.Errorf("panel %q of the jobs %s: %v %v", panel.Title, jobs, shown, err)
			}
		}
	}
	if seen != len(draws) {
		t.Errorf("%d panels are described, and there are %d", len(draws), seen)
	}
}

func TestAPanelThatShowsSomethingElseIsFound(t *testing.T) {
	hour, text := theHour(t), read(t, boardFile)
	for _, mistake := range [][2]string{
		{`health=\"Unhealthy\"`, `health=\"unhealthy\"`},
		{`device_health_brakes_half_open`, `device_health_brakes_engaged`},
		{`max by (health)`, `sum by (health)`},
		{`sum by (cause)`, `sum by (reason)`},
		{`{{policy}}`, `policy`},
		{`{job=~\"$job\"}`, `{job=~\".*\"}`},
		{`"instant": true,`, ``},
		{`"value_and_name"`, `"auto"`},
		{` unless device_health_actions_total offset $__rate_interval`, ` unless device_health_actions_total`},
		{`[24h]`, `[1m]`},
		{`} unless present_over_time(device_health_would_taint_total[1h] offset 24h) or `, `} * 0 or `},
	} {
		planted := strings.ReplaceAll(text, mistake[0], mistake[1])
		if planted == text {
			t.Errorf("%s is not in the dashboard", mistake[0])
		} else if !slices.ContainsFunc(decoded(t, planted).Panels, func(panel panel) bool { return hour.differs(panel) != "" }) {
			t.Errorf("%s in place of %s was not found", mistake[1], mistake[0])
		}
	}
}

// What a counter had before Prometheus lost sight of it is not shown as if it had happened when it saw it again.
func TestAnHourWithoutPrometheusIsNoEvent(t *testing.T) {
	series := `
device_health_build_info{version="0.2.0"} 1x1000 _x59 1x1700
device_health_actions_total{action="EvictPod",outcome="ok",policy="gpus",driver="gpu.example.com",resource=""} 7x1000 _x59 7x1700
device_health_actions_total{action="EvictPod",outcome="Blocked",policy="gpus",driver="gpu.example.com",resource=""} 7x1000 _x59 7x1700
device_health_would_evict_total{policy="trial"} 7x1000 _x59 7x1700
device_health_would_taint_total{policy="trial"} 7x1000 _x59 7x1700
device_health_would_credit_total{policy="trial"} 7x1000 _x59 7x1700
device_health_would_hand_over_total{policy="trial"} 7x1000 _x59 7x1700
device_health_would_evict_outcomes_total{outcome="recovered",policy="trial"} 7x1000 _x59 7x1700
device_health_watch_restarts_total{kind="Pod",cause="Silent"} 7x1000 _x59 7x1700
`
	after := screenOver(t, "1m", scraped(t, "ours", "a", series), 1001*time.Minute, 2750*time.Minute)
	aDayAfter := after
	aDayAfter.from = 1500 * time.Minute
	for title, screen := range map[string]screen{
		"Actions that succeeded": after, "Actions that failed": after, "Lists and watches that ended": after, "Predictions beside outcomes, 24 hours": aDayAfter,
	} {
		panels := decoded(t, strings.ReplaceAll(read(t, boardFile), "$__rate_interval", "4m0s")).Panels
		panel := panels[slices.IndexFunc(panels, func(panel panel) bool { return panel.Title == title })]
		shown, err := screen.shows(panel)
		if err != nil {
			t.Fatal(err)
		}
		for legend, number := range shown {
			if number != 0 {
				t.Errorf("panel %q shows %v of %q", title, number, legend)
			}
		}
	}
}

func TestTheDashboardOffersTheJobsThatAreScraped(t *testing.T) {
	variables := decoded(t, read(t, boardFile)).Templating.List
	variable := variables[slices.IndexFunc(variables, func(variable variable) bool { return variable.Name == "job" })]
	if variable.AllValue != ".*" {
		t.Errorf("all jobs are %q", variable.AllValue)
	}
	asked := regexp.MustCompile(`label_values\((\w+), (\w+)\)`).FindStringSubmatch(fmt.Sprint(variable.Query))
	if asked == nil {
		t.Fatalf("it does not ask for a label's values: %v", variable.Query)
	}
	querier, err := theHour(t).store.Querier(0, time.Hour.Milliseconds())
	if err != nil {
		t.Fatal(err)
	}
	defer querier.Close()
	values, _, err := querier.LabelValues(context.Background(), asked[2], nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", asked[1]))
	if err != nil || !slices.Equal(values, []string{"others", "ours"}) {
		t.Errorf("it offers %v: %v", values, err)
	}
}
