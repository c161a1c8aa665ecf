// Package monitoring holds alerts, dashboard and documentation to what the program says on /metrics.
package monitoring

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// target is what every series has besides: the labels that Prometheus adds, and those of a bucket.
var target = []string{"namespace", "pod", "job", "instance", "le"}

// documented metrics: their names, and the labels of each.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	metrics := map[string][]string{}
	for _, line := range regexp.MustCompile("(?m)^\\| `(device_health_[a-z_]+)(?:\\{([a-z_,]+)\\})?` \\| (\\w+) ").FindAllStringSubmatch(read(t, "docs/metrics.md"), -1) {
		names := []string{line[1]}
		if line[3] == "histogram" {
			names = []string{line[1] + "_bucket", line[1] + "_sum", line[1] + "_count"}
		}
		for _, name := range names {
			metrics[name] = append(strings.Split(line[2], ","), target...)
		}
	}
	if len(metrics) < 10 {
		t.Fatalf("docs/metrics.md documents only %v", metrics)
	}
	return metrics
}

var parse = parser.NewParser(parser.Options{})

// uses checks every selector of an expression against the documentation, and returns the metrics that it names.
func uses(t *testing.T, where, expression string) (metrics []string) {
	t.Helper()
	known := documented(t)
	tree, err := parse.ParseExpr(expression)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return nil
	}
	parser.Inspect(tree, func(node parser.Node, _ []parser.Node) error {
		switch at := node.(type) {
		case *parser.VectorSelector:
			metrics = append(metrics, at.Name)
			allowed, there := known[at.Name]
			if !there {
				t.Errorf("%s: docs/metrics.md has no %s", where, at.Name)
			}
			for _, matcher := range at.LabelMatchers {
				if matcher.Name != model.MetricNameLabel && !slices.Contains(allowed, matcher.Name) {
					t.Errorf("%s: %s has no label %s", where, at.Name, matcher.Name)
				}
				words(t, where, at.Name, matcher)
			}
		case *parser.AggregateExpr:
			for _, label := range at.Grouping {
				if !slices.ContainsFunc(selectors(at.Expr), func(name string) bool { return slices.Contains(known[name], label) }) {
					t.Errorf("%s: nothing in %s has a label %s", where, at.Expr, label)
				}
			}
		}
		return nil
	})
	return metrics
}

func selectors(expression parser.Node) (names []string) {
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if at, ok := node.(*parser.VectorSelector); ok {
			names = append(names, at.Name)
		}
		return nil
	})
	return names
}

// words checks that a matcher's values are words that exist: an alert on a reason that was renamed would never fire.
func words(t *testing.T, where, metric string, matcher *labels.Matcher) {
	t.Helper()
	source := map[string]string{"reason": "docs/verdicts.md", "outcome": "base/error.cc", "state": "k8s-client/protocol/watch_status.cc", "health": "docs/metrics.md"}[matcher.Name]
	if source == "" || matcher.Value == "ok" {
		return
	}
	for _, word := range strings.Split(matcher.Value, "|") {
		text := read(t, source)
		if !strings.Contains(text, "`"+word+"`") && !strings.Contains(text, "\""+word+"\"") {
			t.Errorf("%s: %s{%s}: %s does not know %s", where, metric, matcher, source, word)
		}
	}
}

func groups(t *testing.T) *rulefmt.RuleGroups {
	t.Helper()
	object := struct{ Spec any }{}
	if err := yaml.Unmarshal([]byte(read(t, "manifests/components/alerts/prometheus-rule.yaml")), &object); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	// What `promtool check rules` calls: names, expressions, durations, templates in annotations, doubled rules.
	found, errs := rulefmt.Parse(text, false, model.UTF8Validation, parse, slog.Default())
	for _, err := range errs {
		t.Error(err)
	}
	if found == nil || len(found.Groups) == 0 {
		t.Fatal("there are no rules")
	}
	return found
}

func TestEveryAlertIsARuleOfPrometheusOverMetricsThatExist(t *testing.T) {
	for _, group := range groups(t).Groups {
		for _, rule := range group.Rules {
			if len(uses(t, rule.Alert, rule.Expr)) == 0 {
				t.Errorf("%s asks for no metric", rule.Alert)
			}
			if rule.Alert == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || !slices.Contains([]string{"warning", "critical"}, rule.Labels["severity"]) {
				t.Errorf("%+v lacks a name, a summary, a description or a severity", rule)
			}
		}
	}
}

func TestEveryAlertHasARunbookAndEveryRunbookAnAlert(t *testing.T) {
	pages := map[string]bool{}
	files, err := filepath.Glob("../../../docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		pages[strings.TrimSuffix(filepath.Base(file), ".md")] = true
	}
	delete(pages, "README")
	for _, group := range groups(t).Groups {
		for _, rule := range group.Rules {
			page := "docs/runbooks/" + rule.Alert + ".md"
			if rule.Annotations["runbook"] != page {
				t.Errorf("%s: its runbook is %q", rule.Alert, rule.Annotations["runbook"])
			}
			if !pages[rule.Alert] {
				t.Errorf("%s does not exist", page)
				continue
			}
			text := read(t, page)
			for _, part := range []string{"# " + rule.Alert, "## What it means", "## Look", "## Remedy", rule.Expr} {
				if !strings.Contains(text, part) {
					t.Errorf("%s has no %q", page, part)
				}
			}
			// /verdicts is on the Pod's loopback only, which kubectl port-forward reaches.
			if strings.Contains(text, "/verdicts") != strings.Contains(text, "127.0.0.1:8082/verdicts") || strings.Contains(text, "8081") {
				t.Errorf("%s asks for /verdicts where it is not", page)
			}
			if strings.Contains(text, "127.0.0.1:8082/") && !(strings.Contains(text, "port-forward") && strings.Contains(text, " 8082 &")) {
				t.Errorf("%s does not say how 8082 is reached", page)
			}
			delete(pages, rule.Alert)
		}
	}
	for page := range pages {
		t.Errorf("docs/runbooks/%s.md: there is no such alert", page)
	}
}

// What is looked at of a Grafana dashboard.
type (
	dashboard struct {
		Title      string
		UID        string `json:"uid"`
		Templating struct{ List []variable }
		Panels     []panel
	}
	variable struct {
		Name, Type, AllValue string
		Query                any // a text, or an object that has it
	}
	panel struct {
		ID      int `json:"id"`
		Title   string
		Type    string
		GridPos struct{ H, W, X, Y int } `json:"gridPos"`
		Options struct{ TextMode string }
		Targets []query
	}
	query struct {
		Expr, RefID, LegendFormat string
		Instant                   bool
	}
)

func decoded(t *testing.T, text string) (board dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &board); err != nil {
		t.Fatal(err)
	}
	return board
}

func TestTheDashboardAsksOnlyForMetricsThatExist(t *testing.T) {
	board := decoded(t, read(t, boardFile))
	ids := map[int]bool{}
	if len(board.Panels) < 10 {
		t.Errorf("only %d panels", len(board.Panels))
	}
	for _, panel := range board.Panels {
		if ids[panel.ID] || panel.Title == "" || len(panel.Targets) == 0 || panel.GridPos.X+panel.GridPos.W > 24 {
			t.Errorf("panel %d %q: doubled, nameless, empty or beyond the edge", panel.ID, panel.Title)
		}
		ids[panel.ID] = true
		for _, target := range panel.Targets {
			if len(uses(t, panel.Title, filledIn(target.Expr, ".*"))) == 0 {
				t.Errorf("panel %q asks for no metric", panel.Title)
			}
		}
	}
}
