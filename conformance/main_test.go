package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"device-health.io/controller/device-health-conformance/stories"
)

func TestWhatCannotBeMeantIsAUsageError(t *testing.T) {
	for _, arguments := range [][]string{
		{"--no-such-flag"}, {"--only", "no-such-story"}, {"--only", "("}, {"--devices", "gpus"}, {"--opt-out", "key"}, {"--opt-out", "=value"},
		{"--react-within", "0s"}, {"--recover-within", "-1s"}, {"--settle", "0s"}, {"--blip", "0s"}, {"--parallel", "0"}, {"--timeout", "-1s"}, {"--qps", "0"}, {"--domain", "Not A Domain"},
		{"a-file"}, {"--table"}, {"--table", filepath.Join(t.TempDir(), "no-such-file")},
	} {
		var out, err bytes.Buffer
		if code := run(arguments, &out, &err); code != usage || err.Len() == 0 {
			t.Errorf("%q: exit code %d, %q", arguments, code, &err)
		}
	}
}

func TestAClusterThatIsNotThereIsAFailure(t *testing.T) {
	var out, err bytes.Buffer
	if code := run([]string{"--kubeconfig", filepath.Join(t.TempDir(), "none")}, &out, &err); code != broken || !strings.Contains(err.String(), "none") {
		t.Errorf("exit code %d, %q", code, &err)
	}
}

func TestThePageHasTheListAsItIs(t *testing.T) {
	o, err := parse(nil, new(bytes.Buffer))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "<!-- stories -->\n"+listTable(o)+"<!-- end of stories -->") {
		t.Error("docs/conformance.md has another list: make conformance-page writes it")
	}
}

func TestTheListHasEachStoryOnce(t *testing.T) {
	var out, err bytes.Buffer
	if code := run([]string{"--list"}, &out, &err); code != allKept {
		t.Fatalf("exit code %d: %s", code, &err)
	}
	seen := map[string]bool{}
	name := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for _, story := range stories.All() {
		// The longest names are those of Namespaces and drivers: 63 bytes with the longest domain.
		if seen[story.ID] || !name.MatchString(story.ID) || len(story.ID) > 20 {
			t.Errorf("%q is no id, too long, or another's", story.ID)
		}
		seen[story.ID] = true
		for _, sentence := range []string{story.Promise, story.Why} {
			if !strings.HasSuffix(sentence, ".") || strings.Contains(sentence, "|") {
				t.Errorf("%s: %q is no sentence of a table", story.ID, sentence)
			}
		}
		if count := strings.Count("\n"+out.String(), "\n"+story.ID+" "); count != 1 {
			t.Errorf("%s is listed %d times", story.ID, count)
		}
	}
	if len(seen) < 25 {
		t.Errorf("there are %d stories", len(seen))
	}
}
