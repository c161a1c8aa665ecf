package manifests

import (
	"encoding/xml"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// ciExamples are the documents of docs/policy-tests.md, "In CI".
func ciExamples(t *testing.T) (examples []map[string]any) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(Root(t), "docs/policy-tests.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## In CI\n")
	if !found {
		t.Fatal("the page has no such section")
	}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(section, -1) {
		example := map[string]any{}
		if err := yaml.UnmarshalStrict([]byte(block[1]), &example); err != nil {
			t.Fatalf("%v in\n%s", err, block[1])
		}
		examples = append(examples, example)
	}
	if len(examples) != 2 {
		t.Fatalf("%d examples instead of GitHub's and GitLab's", len(examples))
	}
	return examples
}

// texts are all strings in a document.
func texts(value any) (all []string) {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		for _, one := range value {
			all = append(all, texts(one)...)
		}
	case map[string]any:
		for _, one := range value {
			all = append(all, texts(one)...)
		}
	}
	return all
}

// checkout is a user's repository: the shipped examples and their tests, where the page has them.
func checkout(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	examples := filepath.Join(Root(t), "manifests/examples")
	copied := map[string]string{"": "tests", "policy-tests": "tests/device-health"}
	for from, to := range copied {
		if err := os.MkdirAll(filepath.Join(folder, to), 0o755); err != nil {
			t.Fatal(err)
		}
		files, err := fs.Glob(os.DirFS(filepath.Join(examples, from)), "*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", from, err)
		}
		for _, file := range files {
			if file == "presets.yaml" { // its presets lie beside manifests/examples
				continue
			}
			text, err := os.ReadFile(filepath.Join(examples, from, file))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, to, file), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return folder
}

func TestTheExamplesForCIRunTheTestsAndKeepTheirReport(t *testing.T) {
	binary := os.Getenv("DHC_BINARY")
	if binary == "" {
		t.Fatal("DHC_BINARY names no program")
	}
	for _, example := range ciExamples(t) {
		var commands []string
		reports := 0
		for _, text := range texts(example) {
			if _, command, found := strings.Cut(text, " IMAGE "); found {
				commands = append(commands, command)
			}
			if text == "device-health.xml" {
				reports++
			}
		}
		if len(commands) != 1 || reports != 1 {
			t.Fatalf("%d commands, %d reports kept in %v", len(commands), reports, example)
		}
		folder := checkout(t)
		command := exec.Command("sh", "-c", `"$DHC_BINARY" `+commands[0])
		command.Dir = folder
		command.Env = append(os.Environ(), "DHC_BINARY="+binary)
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", commands[0], err, out)
		}
		report, err := os.ReadFile(filepath.Join(folder, "device-health.xml"))
		if err != nil {
			t.Fatal(err)
		}
		suites := struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
		}{}
		if err := xml.Unmarshal(report, &suites); err != nil || suites.Tests == 0 || suites.Failures != 0 {
			t.Errorf("%v: %+v", err, suites)
		}
	}
}

// Each example has the shape that its system reads; what else they would refuse cannot be known without them.
func TestTheExamplesForCIHaveTheShapeOfTheirSystem(t *testing.T) {
	examples := ciExamples(t)
	jobs, _ := examples[0]["jobs"].(map[string]any)
	github, _ := jobs["device-health"].(map[string]any)
	steps, _ := github["steps"].([]any)
	if github["runs-on"] == nil || len(steps) != 3 {
		t.Errorf("GitHub: %v", examples[0])
	}
	for _, step := range steps {
		step := step.(map[string]any)
		if (step["uses"] == nil) == (step["run"] == nil) {
			t.Errorf("a step needs one of uses and run: %v", step)
		}
	}
	if last := steps[len(steps)-1].(map[string]any); last["if"] != "always()" {
		t.Errorf("the report of a failed test is not kept: %v", last)
	}
	gitlab, _ := examples[1]["device-health"].(map[string]any)
	artifacts, _ := gitlab["artifacts"].(map[string]any)
	reports, _ := artifacts["reports"].(map[string]any)
	if script, _ := gitlab["script"].([]any); len(script) != 1 || artifacts["when"] != "always" || reports["junit"] != "device-health.xml" {
		t.Errorf("GitLab: %v", examples[1])
	}
}
