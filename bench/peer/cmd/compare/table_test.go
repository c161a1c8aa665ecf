package main

import (
	"strings"
	"testing"
)

func TestATableHasTheRunsBesideEachOtherAndTheRatiosOfTheirMeans(t *testing.T) {
	run := func(title string, cpu float64) result {
		return result{contender: contender{title: title}, values: map[string]float64{"sync_cpu": cpu}}
	}
	var out strings.Builder
	if !table(&out, 150000, []result{run("ours", 1), run("Go", 4), run("ours", 3), run("Go", 6)}) {
		t.Error("correct runs are called incorrect")
	}
	for _, want := range []string{"### 150,000 pods", "| | unit | ours | Go | Go / ours |", "|---|---|---:|---:|---:|", "| cold sync, CPU | s | 1 / 3 | 4 / 6 | 2.5 |"} {
		if !strings.Contains(out.String(), want+"\n") {
			t.Errorf("no line %q in\n%s", want, &out)
		}
	}
}

func TestARunWithAFailureTooManyOrTooFewEvictionsIsIncorrect(t *testing.T) {
	for _, wrong := range []result{{missing: 1}, {values: map[string]float64{"duplicate": 1}}, {values: map[string]float64{"healthy": 1}}} {
		if wrong.values == nil {
			wrong.values = map[string]float64{}
		}
		if table(&strings.Builder{}, 10, []result{wrong}) {
			t.Error(wrong)
		}
	}
}
