package score

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"device-health.io/controller/device-health-conformance/stage"
)

func report(name string, results ...Result) Report {
	return Report{Name: name, Server: "v1.37.1", Began: time.Unix(0, 0), Results: results}
}

var (
	kept     = Result{ID: "moves", Promise: "It moves.", Required: true, Status: stage.Passed, Took: 1500 * time.Millisecond}
	broken   = Result{ID: "neighbour", Promise: "It stays.", Required: true, Status: stage.Failed, Reason: "it was lost & gone"}
	wished   = Result{ID: "blip", Promise: "It waits.", Status: stage.Failed, Reason: "it did not"}
	untold   = Result{ID: "budget", Promise: "It holds.", Required: true, Status: stage.Broken, Reason: "no nodes"}
	notAsked = Result{ID: "opted-out", Promise: "It obeys.", Required: true, Status: stage.NotApplicable, Reason: "no --opt-out"}
)

func TestOnlyRequiredPromisesDecide(t *testing.T) {
	for _, c := range []struct {
		why      string
		report   Report
		conforms bool
	}{
		{"all kept", report("a", kept), true},
		{"a recommended one broken", report("a", kept, wished), true},
		{"one not applicable", report("a", kept, notAsked), true},
		{"a required one broken", report("a", kept, broken), false},
		{"a required one untold", report("a", kept, untold), false},
		{"nothing judged", report("a", notAsked), false},
		{"nothing required", report("a", wished), false},
	} {
		if got := c.report.Conforms(); got != c.conforms {
			t.Errorf("%s: conforms is %t", c.why, got)
		}
	}
}

func TestTheSummaryCountsWhatWasJudged(t *testing.T) {
	const want = "required: 1 of 3 kept, recommended: 0 of 1, not applicable: 1"
	if got := report("a", kept, broken, untold, notAsked, wished).Summary(); got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestATableHasARowForEachStoryOfAnyReport(t *testing.T) {
	want := strings.TrimPrefix(`
| story | a user is promised | a | b |
|---|---|:-:|:-:|
| **required** | | **1 of 2** | **1 of 1** |
| `+"`moves`"+` | It moves. | kept | kept |
| `+"`neighbour`"+` | It stays. | **broken** | - |
| **recommended** | | **0 of 1** | **0 of 0** |
| `+"`blip`"+` | It waits. | **broken** | - |
`, "\n")
	if got := Table([]Report{report("a", kept, broken, wished), report("b", kept)}); got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
}

func TestJUnitIsRedForWhatIsRequiredAlone(t *testing.T) {
	text, err := report("a", kept, broken, wished, untold, notAsked).JUnit()
	if err != nil {
		t.Fatal(err)
	}
	var read testsuites
	if err := xml.Unmarshal(text, &read); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	suite := read.Suites[0]
	if suite.Tests != 5 || suite.Failures != 1 || suite.Errors != 1 || suite.Skipped != 2 || suite.Time != "1.500" {
		t.Errorf("%+v", suite)
	}
	for i, want := range []struct{ failure, err, skipped bool }{{}, {failure: true}, {skipped: true}, {err: true}, {skipped: true}} {
		one := suite.Cases[i]
		if (one.Failure != nil) != want.failure || (one.Error != nil) != want.err || (one.Skipped != nil) != want.skipped {
			t.Errorf("%+v, not %+v", one, want)
		}
	}
	if got := suite.Cases[1].Failure.Message; got != broken.Reason {
		t.Errorf("%q", got)
	}
}

func TestAReportIsReadAsItWasWritten(t *testing.T) {
	before := report("a", kept, broken)
	text, err := before.JSON()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	after, err := Read(file)
	if err != nil || after.Summary() != before.Summary() || after.Results[1] != before.Results[1] {
		t.Errorf("%+v, %v", after, err)
	}
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file); err == nil {
		t.Error("a report without results was read")
	}
}
