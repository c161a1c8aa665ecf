package main

import (
	"fmt"
	"io"
	"strings"
)

// table prints one line a figure: a column a contender, with the runs beside each other, and how many times the first one's
// mean each other's is. It returns whether all runs were correct.
func table(out io.Writer, pods int, results []result) (correct bool) {
	titles, runs := byContender(results)
	head := "| | unit |"
	for _, title := range titles {
		head += " " + title + " |"
	}
	for _, title := range titles[1:] {
		head += fmt.Sprintf(" %s / %s |", title, titles[0])
	}
	fmt.Fprintf(out, "\n### %s pods\n\n%s\n%s\n", thousands(pods), head, "|---|---"+strings.Repeat("|---:", len(titles)*2-1)+"|")
	for _, f := range figures {
		line := fmt.Sprintf("| %s | %s |", f.title, f.unit)
		means := make([]float64, len(titles))
		for i, title := range titles {
			var texts []string
			for _, r := range runs[title] {
				texts = append(texts, number(r.values[f.key]))
				means[i] += r.values[f.key] / float64(len(runs[title]))
			}
			line += " " + strings.Join(texts, " / ") + " |"
		}
		for _, mean := range means[1:] {
			if f.ratio && means[0] > 0 {
				line += " " + number(mean/means[0]) + " |"
			} else {
				line += " |"
			}
		}
		fmt.Fprintln(out, line)
	}
	correct = true
	for _, r := range results {
		correct = correct && r.correct()
	}
	return correct
}

// byContender keeps the order in which the contenders were first run.
func byContender(results []result) (titles []string, runs map[string][]result) {
	runs = map[string][]result{}
	for _, r := range results {
		if runs[r.title] == nil {
			titles = append(titles, r.title)
		}
		runs[r.title] = append(runs[r.title], r)
	}
	return titles, runs
}

// thousands writes 150000 as 150,000.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
