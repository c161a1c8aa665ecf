// Package score counts how stories ended, and prints it for people and for machines.
package score

import (
	"fmt"
	"strings"
	"time"

	"device-health.io/controller/device-health-conformance/stage"
)

// Result of one story.
type Result struct {
	ID       string        `json:"id"`
	Promise  string        `json:"promise"`
	Required bool          `json:"required"`
	Status   stage.Status  `json:"status"`
	Reason   string        `json:"reason,omitempty"`
	Took     time.Duration `json:"tookNanoseconds"`
}

// Report of one run.
type Report struct {
	Name    string    `json:"name"`   // of the remediator, as whoever ran the suite calls it
	Server  string    `json:"server"` // version of the API server
	Began   time.Time `json:"began"`
	Results []Result  `json:"results"`
}

// Count of the stories of one kind.
type Count struct{ Passed, Failed, NotApplicable int }

// Judged are those that say something.
func (c Count) Judged() int { return c.Passed + c.Failed }

// Count the required or the recommended stories. One that could not be told counts as failed: nobody knows that the promise is kept.
func (r Report) Count(required bool) (c Count) {
	for _, result := range r.Results {
		switch {
		case result.Required != required:
		case result.Status == stage.Passed:
			c.Passed++
		case result.Status == stage.NotApplicable:
			c.NotApplicable++
		default:
			c.Failed++
		}
	}
	return c
}

// Conforms says whether every required promise that could be judged was kept, and some could.
func (r Report) Conforms() bool {
	c := r.Count(true)
	return c.Failed == 0 && c.Passed > 0
}

// Summary is one line.
func (r Report) Summary() string {
	required, recommended := r.Count(true), r.Count(false)
	return fmt.Sprintf("required: %d of %d kept, recommended: %d of %d, not applicable: %d", required.Passed, required.Judged(), recommended.Passed, recommended.Judged(),
		required.NotApplicable+recommended.NotApplicable)
}

// word of a status in a table.
func word(status stage.Status) string {
	switch status {
	case stage.Passed:
		return "kept"
	case stage.Failed:
		return "**broken**"
	case stage.NotApplicable:
		return "-"
	default:
		return "error"
	}
}

// Table in Markdown: a row for each story, a column for each report, and below it why a promise was not kept.
func Table(reports []Report) string {
	var text strings.Builder
	text.WriteString("| story | a user is promised |")
	for _, report := range reports {
		text.WriteString(" " + report.Name + " |")
	}
	text.WriteString("\n|---|---|" + strings.Repeat(":-:|", len(reports)) + "\n")
	for _, required := range []bool{true, false} {
		kind := map[bool]string{true: "required", false: "recommended"}[required]
		fmt.Fprintf(&text, "| **%s** | |", kind)
		for _, report := range reports {
			count := report.Count(required)
			fmt.Fprintf(&text, " **%d of %d** |", count.Passed, count.Judged())
		}
		text.WriteString("\n")
		for _, story := range stories(reports) {
			if story.Required != required {
				continue
			}
			fmt.Fprintf(&text, "| `%s` | %s |", story.ID, story.Promise)
			for _, report := range reports {
				text.WriteString(" " + word(report.status(story.ID)) + " |")
			}
			text.WriteString("\n")
		}
	}
	return text.String()
}

// Reasons are a list in Markdown of what each report's promises were broken by.
func Reasons(reports []Report) string {
	var text strings.Builder
	for _, report := range reports {
		for _, result := range report.Results {
			if result.Status != stage.Passed {
				fmt.Fprintf(&text, "- %s, `%s`: %s\n", report.Name, result.ID, result.Reason)
			}
		}
	}
	return text.String()
}

// stories of all reports, each once, in the order in which they come.
func stories(reports []Report) (all []Result) {
	seen := map[string]bool{}
	for _, report := range reports {
		for _, result := range report.Results {
			if !seen[result.ID] {
				seen[result.ID] = true
				all = append(all, result)
			}
		}
	}
	return all
}

func (r Report) status(id string) stage.Status {
	for _, result := range r.Results {
		if result.ID == id {
			return result.Status
		}
	}
	return stage.NotApplicable
}
