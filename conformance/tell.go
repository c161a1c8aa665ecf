package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"device-health.io/controller/device-health-conformance/score"
	"device-health.io/controller/device-health-conformance/stage"
)

func (o options) client() (kubernetes.Interface, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context}).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst, config.UserAgent = float32(o.qps), int(2*o.qps), "device-health-conformance"
	return kubernetes.NewForConfig(config)
}

func cleanUp(ctx context.Context, o options) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	return stage.Remove(ctx, client, "")
}

// tellAll tells the selected stories and says whether every required promise was kept.
func tellAll(ctx context.Context, o options, stdout, stderr io.Writer) (kept bool, err error) {
	if o.Client, err = o.client(); err != nil {
		return false, err
	}
	version, err := o.Client.Discovery().ServerVersion()
	if err != nil {
		return false, fmt.Errorf("the API server does not answer: %w", err)
	}
	if _, err := o.Client.Discovery().ServerResourcesForGroupVersion("resource.k8s.io/v1"); err != nil {
		o.DRA = false
	}
	o.Version = version.GitVersion
	o.Run = fmt.Sprintf("%05x", rand.N(1<<20))
	report := score.Report{Name: o.name, Server: version.GitVersion, Began: time.Now().UTC().Truncate(time.Second)}
	report.Results = o.tell(ctx, stderr)
	left := o.sweep()
	fmt.Fprint(stdout, score.Table([]score.Report{report}), "\n", score.Reasons([]score.Report{report}), "\n", report.Summary(), "\n")
	if err := errors.Join(o.write(report), left); err != nil {
		return false, err
	}
	if ctx.Err() != nil {
		return false, fmt.Errorf("interrupted; what the run made is deleted")
	}
	return report.Conforms(), nil
}

// tell the stories beside each other, and then one by one those that disturb others.
func (o options) tell(ctx context.Context, stderr io.Writer) []score.Result {
	selected := o.selected()
	results := make([]score.Result, len(selected))
	var saying sync.Mutex
	say := func(format string, args ...any) {
		saying.Lock()
		defer saying.Unlock()
		fmt.Fprintf(stderr, format+"\n", args...)
	}
	one := func(i int) {
		story := selected[i]
		if o.verbose {
			say("%s begins", story.ID)
		}
		began := time.Now()
		within, stop := context.WithTimeoutCause(ctx, o.timeout, stage.ErrTimeout)
		ending := stage.Perform(within, o.Settings, story.ID, story.Tell)
		stop()
		results[i] = score.Result{ID: story.ID, Promise: story.Promise, Required: story.Required, Status: ending.Status, Reason: ending.Reason, Took: time.Since(began)}
		switch {
		case o.verbose && ending.Reason != "":
			say("%s %s after %s: %s", story.ID, ending.Status, time.Since(began).Round(time.Second), ending.Reason)
		default:
			say("%s %s", story.ID, ending.Status)
		}
	}
	places := make(chan struct{}, o.parallel)
	var told sync.WaitGroup
	for i, story := range selected {
		if !story.Alone {
			places <- struct{}{}
			told.Go(func() {
				one(i)
				<-places
			})
		}
	}
	told.Wait()
	for i, story := range selected {
		if story.Alone {
			one(i)
		}
	}
	return results
}

// sweep deletes whatever of this run is left.
func (o options) sweep() error {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	return stage.Remove(ctx, o.Client, o.Run)
}

func (o options) write(report score.Report) error {
	var problems []error
	write := func(file string, text []byte, err error) {
		if file != "" && err == nil {
			err = os.WriteFile(file, text, 0o644)
		}
		problems = append(problems, err)
	}
	junit, err := report.JUnit()
	write(o.junit, junit, err)
	text, err := report.JSON()
	write(o.json, text, err)
	write(o.markdown, []byte(score.Table([]score.Report{report})), nil)
	return errors.Join(problems...)
}
