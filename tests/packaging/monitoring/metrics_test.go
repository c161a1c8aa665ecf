package monitoring

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// page is what the running program says on /metrics, once these metrics or series have a number there. Its cluster does not answer: the page is there all
// the same.
func page(t *testing.T, awaited ...string) string {
	t.Helper()
	binary := os.Getenv("DHC_BINARY")
	if binary == "" {
		t.Fatal("DHC_BINARY names no program")
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`
apiVersion: v1
kind: Config
current-context: nowhere
clusters: [{name: nowhere, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: nobody, user: {token: none}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	program := exec.CommandContext(ctx, binary, "run", "--kubeconfig", kubeconfig, "--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "0", "--detail-bind-address", "0", "--log-format", "json")
	output, err := program.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Process.Kill(); _ = program.Wait() }()
	address := regexp.MustCompile(`127\.0\.0\.1:[1-9][0-9]+`)
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if at := address.FindString(lines.Text()); at != "" && strings.Contains(lines.Text(), "metrics") {
			for text := ""; ; time.Sleep(10 * time.Millisecond) {
				text = "\n" + get(t, "http://"+at+"/metrics")
				missing := slices.DeleteFunc(slices.Clone(awaited), func(name string) bool {
					return strings.Contains(text, "\n"+name+"{") || strings.Contains(text, "\n"+name+" ")
				})
				if len(missing) == 0 {
					return text
				}
				if ctx.Err() != nil {
					t.Fatalf("the page never had %v:\n%s", missing, text)
				}
			}
		}
	}
	t.Fatal("the program never said where its metrics are")
	return ""
}

func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v", url, response.StatusCode, err)
	}
	return string(body)
}

func TestTheProgramsMetricsAreReadAndPassTheLinterOfPrometheus(t *testing.T) {
	text := page(t)
	format := expfmt.NewTextParser(model.UTF8Validation)
	families, err := format.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
	known := documented(t)
	for name, family := range families {
		labels, there := known[name]
		if !there {
			labels, there = known[name+"_bucket"]
		}
		if !there {
			t.Errorf("docs/metrics.md has no %s", name)
		}
		for _, metric := range family.Metric {
			for _, label := range metric.Label {
				if !strings.Contains(" "+strings.Join(labels, " ")+" ", " "+label.GetName()+" ") {
					t.Errorf("docs/metrics.md does not say that %s has a label %s", name, label.GetName())
				}
			}
		}
	}
	for _, name := range []string{"device_health_build_info", "device_health_synced", "device_health_policy_last_reload_success"} {
		if families[name] == nil {
			t.Errorf("%s is not there before anything has happened, so no alert could see it", name)
		}
	}
}

func TestTheDocumentationSaysTheTypeOfEveryMetric(t *testing.T) {
	text, page := page(t), read(t, "docs/metrics.md")
	for _, line := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
		if !regexp.MustCompile("(?m)^\\| `" + line[1] + "[`{].* \\| " + line[2] + " \\|").MatchString(page) {
			t.Errorf("docs/metrics.md does not say that %s is a %s", line[1], line[2])
		}
	}
}
