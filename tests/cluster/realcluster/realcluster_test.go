package realcluster

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// This test binary is also the run under test: with $DHC_INNER_RUN it starts an API server as any other package would.
const innerRun = "DHC_INNER_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(innerRun) == "" {
		if _, err := EnsureBinaries(say); err != nil {
			say("FAILED: %v", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	Main(m, func(planes []*ControlPlane) error {
		fmt.Println("FOLDER", planes[0].Folder)
		return nil
	}, Options{Name: "inner", WithoutControllers: true, NoController: true})
}

func TestInner(t *testing.T) {
	switch os.Getenv(innerRun) {
	case "":
		t.Log("this is the body of the runs that the other tests start")
	case "fails":
		t.Fatal("as it was told to")
	case "blocks":
		select {}
	}
}

type inner struct {
	command *exec.Cmd
	folder  string
	logs    string
	errors  bytes.Buffer
}

func startInner(t *testing.T, behaviour string) *inner {
	t.Helper()
	run := &inner{command: exec.Command(os.Args[0], "-test.run=^TestInner$", "-test.v"), logs: t.TempDir()}
	run.command.Env = append(os.Environ(), innerRun+"="+behaviour, "DHC_CLUSTER_LOGS="+run.logs)
	run.command.Stderr = &run.errors
	output, err := run.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if folder, ok := strings.CutPrefix(lines.Text(), "FOLDER "); ok {
			run.folder = folder
			go func() {
				for lines.Scan() {
				}
			}()
			return run
		}
	}
	_ = run.command.Wait()
	t.Fatalf("the run did not come up: %s", &run.errors)
	return nil
}

// processes whose command line names the run's folder.
func (run *inner) processes() (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(run.folder)) {
			found = append(found, string(bytes.ReplaceAll(text[:min(len(text), 80)], []byte{0}, []byte{' '})))
		}
	}
	return found
}

func (run *inner) expectNothingLeft(t *testing.T, code int) {
	t.Helper()
	_ = run.command.Wait()
	if got := run.command.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, not %d: %s", got, code, &run.errors)
	}
	if left := run.processes(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if _, err := os.Stat(run.folder); err == nil {
		t.Errorf("folder %s is left behind", run.folder)
	}
}

func (run *inner) keptLogs() []string {
	kept, _ := filepath.Glob(filepath.Join(run.logs, "*", "*.log"))
	return kept
}

func TestAPassedRunLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	run := startInner(t, "passes")
	run.expectNothingLeft(t, 0)
	if kept := run.keptLogs(); len(kept) > 0 {
		t.Errorf("logs kept: %v", kept)
	}
}

func TestAFailedRunKeepsTheLogsAndNamesTheirFolder(t *testing.T) {
	t.Parallel()
	run := startInner(t, "fails")
	run.expectNothingLeft(t, 1)
	if kept := run.keptLogs(); len(kept) < 3 || !strings.Contains(run.errors.String(), filepath.Dir(kept[0])) {
		t.Errorf("logs kept: %v, said: %s", kept, &run.errors)
	}
}

func TestAnInterruptedRunLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	run := startInner(t, "blocks")
	if len(run.processes()) < 2 {
		t.Fatalf("etcd and the API server are not there to be stopped: %q", run.processes())
	}
	if err := run.command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	run.expectNothingLeft(t, 130)
}

func TestAKilledRunLeavesOnlyAFolderWhichTheNextRunRemoves(t *testing.T) {
	t.Parallel()
	run := startInner(t, "blocks")
	if err := run.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = run.command.Wait()
	Eventually(t, 5*time.Second, "its programs die with it", func() error {
		if left := run.processes(); len(left) > 0 {
			return fmt.Errorf("%q", left)
		}
		return nil
	})
	if _, err := Sweep(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(run.folder); err == nil {
		t.Errorf("folder %s is still there", run.folder)
	}
}

func TestStopEndsAProgramThatIgnoresSIGTERMAndItsChildren(t *testing.T) {
	p, err := StartProcess("stubborn", filepath.Join(t.TempDir(), "stubborn.log"), "/bin/sh", "-c", `trap "" TERM; sleep 600 & echo started; wait`)
	if err != nil {
		t.Fatal(err)
	}
	Eventually(t, 5*time.Second, "it runs", func() error {
		if p.Tail(1) != "started" {
			return fmt.Errorf("%q", p.Tail(1))
		}
		return nil
	})
	if err := p.Stop(100 * time.Millisecond); err != nil {
		t.Error(err)
	}
	if groupLives(p.Pid()) {
		t.Error("its group still has a member")
	}
}
