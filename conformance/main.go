// Command device-health-conformance tells a cluster's remediator of bad devices, whoever that is, some stories of devices that break, and judges by
// what the API server shows.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"device-health.io/controller/device-health-conformance/score"
	"device-health.io/controller/device-health-conformance/stage"
	"device-health.io/controller/device-health-conformance/stories"
)

// Exit codes.
const (
	allKept = 0
	broken  = 1
	usage   = 2
)

const longestDomain = 28

type options struct {
	stage.Settings
	kubeconfig, context, name string
	only                      *regexp.Regexp
	list, verbose, cleanUp    bool
	table                     bool
	files                     []string
	timeout                   time.Duration
	parallel                  int
	qps                       float64
	junit, json, markdown     string
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(arguments []string, stdout, stderr io.Writer) int {
	o, err := parse(arguments, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return allKept
	}
	if err == nil && o.table {
		err = printTable(o.files, stdout)
	} else if err == nil && o.list {
		err = printList(o, stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "device-health-conformance: %v\n", err)
		return usage
	}
	if o.table || o.list {
		return allKept
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ended := context.AfterFunc(ctx, func() {
		stop() // a second one ends the program at once
		fmt.Fprintln(stderr, "interrupted: what the run made is being deleted; again, and it is left to --clean-up")
	})
	defer ended()
	if o.cleanUp {
		err = cleanUp(ctx, o)
	} else {
		var kept bool
		if kept, err = tellAll(ctx, o, stdout, stderr); err == nil && !kept {
			return broken
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "device-health-conformance: %v\n", err)
		return broken
	}
	return allKept
}

func parse(arguments []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("device-health-conformance", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "file; else $KUBECONFIG, ~/.kube/config, or the service account of this pod")
	flags.StringVar(&o.context, "context", "", "of the kubeconfig")
	flags.StringVar(&o.name, "name", "this cluster", "of the remediator, in the reports")
	flags.StringVar(&o.Domain, "domain", "conformance.example.com", "the drivers and resources of the stories end with it, before the resource's /device: the remediator must be responsible for them")
	only := flags.String("only", "", "the stories whose id matches this regular expression")
	devices := flags.String("devices", "dra,plugin", "which kinds the remediator is responsible for")
	optOut := flags.String("opt-out", "", "KEY=VALUE: the annotation of pods that the remediator leaves alone")
	flags.StringVar(&o.RestartCommand, "restart-command", "", "restarts the remediator; returns when it has started again")
	flags.DurationVar(&o.ReactWithin, "react-within", 20*time.Second, "by then the remediator has acted on a bad device")
	flags.DurationVar(&o.RecoverWithin, "recover-within", 20*time.Second, "by then a device that is well again is used again")
	flags.DurationVar(&o.Settle, "settle", 3*time.Second, "how long after a reaction something wrong may still come")
	flags.DurationVar(&o.Blip, "blip", time.Second, "a fault that is over by then is no reason to act; shorter than the remediator's own delay")
	flags.DurationVar(&o.timeout, "timeout", 0, "for each story (default: 20s, and twice the longer of --react-within and --recover-within)")
	flags.IntVar(&o.parallel, "parallel", 16, "how many stories are told beside each other")
	flags.Float64Var(&o.qps, "qps", 100, "requests a second at most")
	flags.StringVar(&o.Image, "image", "registry.k8s.io/pause:3.10", "of the pods, which admission may look at; nobody pulls it")
	flags.StringVar(&o.junit, "junit", "", "write a JUnit report to this file")
	flags.StringVar(&o.json, "json", "", "write the results to this file")
	flags.StringVar(&o.markdown, "markdown", "", "write the table to this file, with --list that of the stories")
	flags.BoolVar(&o.list, "list", false, "print the stories, and tell none")
	flags.BoolVar(&o.verbose, "v", false, "say when a story begins, and why it ended as it did")
	flags.BoolVar(&o.cleanUp, "clean-up", false, "delete what killed runs have left, and tell no story")
	flags.BoolVar(&o.table, "table", false, "print one table of the --json files that are named, and tell no story")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	o.files = flags.Args()
	if len(o.files) > 0 != o.table {
		return o, fmt.Errorf("files are named for --table, and only there: %q", o.files)
	}
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("--only: %w", err)
	}
	if len(o.selected()) == 0 {
		return o, fmt.Errorf("--only=%s: no story has such an id; --list names them", *only)
	}
	for kind := range strings.SplitSeq(*devices, ",") {
		switch kind {
		case "dra":
			o.DRA = true
		case "plugin":
			o.Plugin = true
		default:
			return o, fmt.Errorf("--devices=%s: there are dra and plugin", *devices)
		}
	}
	if *optOut != "" {
		var found bool
		if o.OptOutKey, o.OptOutValue, found = strings.Cut(*optOut, "="); !found || o.OptOutKey == "" {
			return o, fmt.Errorf("--opt-out=%s: it must be KEY=VALUE", *optOut)
		}
	}
	for name, value := range map[string]time.Duration{"react-within": o.ReactWithin, "recover-within": o.RecoverWithin, "settle": o.Settle, "blip": o.Blip} {
		if value <= 0 {
			return o, fmt.Errorf("--%s=%s: it must be more than nothing", name, value)
		}
	}
	if o.parallel < 1 {
		return o, fmt.Errorf("--parallel=%d: it must be at least 1", o.parallel)
	}
	if o.qps <= 0 {
		return o, fmt.Errorf("--qps=%g: it must be more than nothing", o.qps)
	}
	// A driver's name has 63 bytes at most; before the domain stand "control.", the story and the run.
	if problems := validation.IsDNS1123Subdomain(o.Domain); len(problems) > 0 || len(o.Domain) > longestDomain {
		return o, fmt.Errorf("--domain=%s: it must be a DNS name of at most %d bytes", o.Domain, longestDomain)
	}
	if o.timeout < 0 {
		return o, fmt.Errorf("--timeout=%s: it must be more than nothing", o.timeout)
	}
	if o.timeout == 0 {
		o.timeout = 20*time.Second + 2*max(o.ReactWithin, o.RecoverWithin)
	}
	return o, nil
}

func (o options) selected() (some []stories.Story) {
	for _, story := range stories.All() {
		if o.only.MatchString(story.ID) {
			some = append(some, story)
		}
	}
	return some
}

// listTable is the list in Markdown.
func listTable(o options) string {
	var text strings.Builder
	text.WriteString("| story | a user is promised | why |\n|---|---|---|\n")
	for _, required := range []bool{true, false} {
		fmt.Fprintf(&text, "| **%s** | | |\n", map[bool]string{true: "required", false: "recommended"}[required])
		for _, story := range o.selected() {
			if story.Required == required {
				fmt.Fprintf(&text, "| `%s` | %s | %s%s |\n", story.ID, story.Promise, story.Why, source(story))
			}
		}
	}
	return text.String()
}

func printList(o options, stdout io.Writer) error {
	if o.markdown != "" {
		return os.WriteFile(o.markdown, []byte(listTable(o)), 0o644)
	}
	for _, required := range []bool{true, false} {
		for _, story := range o.selected() {
			if story.Required == required {
				kind := map[bool]string{true: "required", false: "recommended"}[required]
				fmt.Fprintf(stdout, "%-18s %-11s %s\n%31s%s%s\n", story.ID, kind, story.Promise, "", story.Why, source(story))
			}
		}
	}
	return nil
}

func source(story stories.Story) string {
	if story.Source == "" {
		return ""
	}
	return " (" + story.Source + ")"
}

func printTable(files []string, stdout io.Writer) error {
	var reports []score.Report
	for _, file := range files {
		report, err := score.Read(file)
		if err != nil {
			return err
		}
		reports = append(reports, report)
	}
	fmt.Fprintf(stdout, "%s\n%s", score.Table(reports), score.Reasons(reports))
	return nil
}
