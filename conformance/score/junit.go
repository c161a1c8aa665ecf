package score

import (
	"encoding/xml"
	"fmt"
	"time"

	"device-health.io/controller/device-health-conformance/stage"
)

type testsuites struct {
	XMLName xml.Name    `xml:"testsuites"`
	Suites  []testsuite `xml:"testsuite"`
}

type testsuite struct {
	Name       string     `xml:"name,attr"`
	Tests      int        `xml:"tests,attr"`
	Failures   int        `xml:"failures,attr"`
	Errors     int        `xml:"errors,attr"`
	Skipped    int        `xml:"skipped,attr"`
	Time       string     `xml:"time,attr"`
	Timestamp  string     `xml:"timestamp,attr"`
	Properties []property `xml:"properties>property"`
	Cases      []testcase `xml:"testcase"`
}

type property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type testcase struct {
	Name    string  `xml:"name,attr"`
	Class   string  `xml:"classname,attr"`
	Time    string  `xml:"time,attr"`
	Failure *remark `xml:"failure"`
	Error   *remark `xml:"error"`
	Skipped *remark `xml:"skipped"`
}

type remark struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit is the report in the form that Jenkins and GitLab read. A recommended promise that was not kept is a skipped case: it does not make a
// pipeline red, as it does not change the exit code.
//
// Source: https://github.com/jenkinsci/xunit-plugin (junit-10.xsd), https://docs.gitlab.com/ci/testing/unit_test_reports/
func (r Report) JUnit() ([]byte, error) {
	suite := testsuite{Name: "device-health-conformance", Tests: len(r.Results), Timestamp: r.Began.UTC().Format("2006-01-02T15:04:05"),
		Properties: []property{{"remediator", r.Name}, {"kubernetes", r.Server}, {"summary", r.Summary()}}}
	var took time.Duration
	for _, result := range r.Results {
		took += result.Took
		kind := map[bool]string{true: "required", false: "recommended"}[result.Required]
		one := testcase{Name: result.ID, Class: "device-health-conformance." + kind, Time: seconds(result.Took)}
		said := &remark{Message: result.Reason, Type: string(result.Status), Text: result.Promise}
		switch {
		case result.Status == stage.Passed:
		case result.Status == stage.NotApplicable:
			one.Skipped = &remark{Message: result.Reason}
			suite.Skipped++
		case !result.Required:
			one.Skipped = &remark{Message: "recommended, not kept: " + result.Reason}
			suite.Skipped++
		case result.Status == stage.Failed:
			one.Failure = said
			suite.Failures++
		default:
			one.Error = said
			suite.Errors++
		}
		suite.Cases = append(suite.Cases, one)
	}
	suite.Time = seconds(took)
	text, err := xml.MarshalIndent(testsuites{Suites: []testsuite{suite}}, "", "  ")
	return append([]byte(xml.Header), append(text, '\n')...), err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
