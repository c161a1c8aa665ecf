package realcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Main is the TestMain of a package that tests against one or more control planes: it builds what is missing, starts them,
// hands them over, runs the tests and leaves nothing behind, on success, on failure and on Ctrl-C.
func Main(m *testing.M, ready func([]*ControlPlane) error, options ...Options) {
	if slices.ContainsFunc(options, func(o Options) bool { return o.Network }) && !inOwnNetwork() {
		os.Exit(againInOwnNetwork())
	}
	os.Exit(run(m, ready, options))
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "cluster: "+format+"\n", args...) }

func run(m *testing.M, ready func([]*ControlPlane) error, options []Options) (code int) {
	if removed, err := Sweep(); err != nil {
		say("what an earlier run left cannot be removed: %v", err)
		return 1
	} else if len(removed) > 0 {
		say("removed what a killed run left: %v", removed)
	}
	ensure := EnsureBinaries
	if slices.ContainsFunc(options, func(o Options) bool { return o.Node }) {
		ensure = EnsureNodeBinaries
	}
	if slices.ContainsFunc(options, func(o Options) bool { return o.Owners }) {
		ensure = EnsureOwnerBinaries
	}
	if slices.ContainsFunc(options, func(o Options) bool { return o.Kueue }) {
		ensure = EnsureKueueBinaries
	}
	binaries, err := ensure(say)
	if err != nil {
		say("FAILED: %v", err)
		return 1
	}
	var once sync.Once
	clean := func(failed bool) (survivors []string) {
		once.Do(func() {
			survivors = stopEverything(failed)
		})
		return survivors
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		say("%s: stopping every program of this run", reasonToStop(signals))
		report(clean(true))
		os.Exit(130)
	}()
	began := time.Now()
	planes, err := startAll(binaries, options)
	if err != nil {
		say("FAILED: %v", err)
		report(clean(true))
		return 1
	}
	say("%d control plane(s) of Kubernetes %s up after %s", len(planes), Release().Version, time.Since(began).Round(100*time.Millisecond))
	if err := ready(planes); err != nil {
		say("FAILED: preparing the cluster: %v", err)
		code = 1
	} else {
		code = m.Run()
		for _, cp := range planes {
			if err := cp.checkInvariants(); err != nil {
				say("FAILED: the audit log of %s: %v", cp.Options.Name, err)
				code = 1
			}
		}
	}
	if report(clean(code != 0)) && code == 0 {
		code = 1
	}
	return code
}

// reasonToStop waits for a signal, or for the end of the go command that started this run: it dies of SIGTERM without a word to
// the test.
func reasonToStop(signals <-chan os.Signal) string {
	parent := os.Getppid()
	for {
		select {
		case s := <-signals:
			return s.String()
		case <-time.After(time.Second):
			if os.Getppid() != parent {
				return "whoever started this run is gone"
			}
		}
	}
}

// startAll starts them at the same time: most of a start is waiting.
func startAll(binaries Binaries, options []Options) ([]*ControlPlane, error) {
	planes, problems := make([]*ControlPlane, len(options)), make([]error, len(options))
	var starts sync.WaitGroup
	for i, o := range options {
		starts.Go(func() { planes[i], problems[i] = Start(binaries, o) })
	}
	starts.Wait()
	return planes, errors.Join(problems...)
}

func stopEverything(keepLogs bool) (survivors []string) {
	planes := everyControlPlane()
	if keepLogs {
		for _, cp := range planes {
			if kept, err := cp.keepLogs(); err != nil {
				say("the logs of %s could not be kept: %v", cp.Options.Name, err)
			} else {
				say("logs of control plane %s: %s", cp.Options.Name, kept)
			}
		}
	}
	for _, cp := range planes {
		survivors = append(survivors, cp.Stop()...)
	}
	return append(survivors, stopAllProcesses()...)
}

func report(survivors []string) (some bool) {
	for _, survivor := range survivors {
		say("LEFT BEHIND: %s", survivor)
	}
	return len(survivors) > 0
}

// keepLogs copies the logs to $DHC_CLUSTER_LOGS, else build/cluster-logs of the repository.
func (cp *ControlPlane) keepLogs() (string, error) {
	folder := os.Getenv("DHC_CLUSTER_LOGS")
	if folder == "" {
		var err error
		if folder, err = RepositoryFile("build/cluster-logs"); err != nil {
			return "", err
		}
	}
	folder = filepath.Join(folder, filepath.Base(cp.Folder))
	err := filepath.WalkDir(cp.Logs, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(cp.Logs, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(folder, relative)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o644)
	})
	return folder, err
}
