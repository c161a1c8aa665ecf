// Package stories has what users are promised when a device breaks, each told as a story on a stage of its own.
package stories

import "device-health.io/controller/device-health-conformance/stage"

// Story of one promise.
type Story struct {
	ID       string
	Promise  string // to a user, in one sentence
	Why      string // what went wrong where it was not kept
	Source   string // where users asked for it, or what defines it; empty: common sense
	Required bool   // else recommended
	Alone    bool   // not beside others: it disturbs them
	Tell     func(*stage.Stage)
}

// All stories, in the order of the report.
func All() (all []Story) {
	for _, some := range [][]Story{moving, untouched, budgets, jobs, owners, reports, claims, ends, afterwards} {
		all = append(all, some...)
	}
	return all
}

const app = "train"

// twoNodes have so many devices each.
func twoNodes(s *stage.Stage, gpu *stage.Source, devices int) {
	s.AddNode(stage.Has{Source: gpu, Count: devices})
	s.AddNode(stage.Has{Source: gpu, Count: devices})
}

// onTwoNodes of so many devices a Deployment's only pod begins that asks for this.
func onTwoNodes(s *stage.Stage, gpu *stage.Source, devices int, ask stage.Ask) stage.Life {
	twoNodes(s, gpu, devices)
	s.Deployment(app, 1, ask)
	return s.Begin(app, 1)[0]
}
