package realnode

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realcluster"
)

// This test binary is also the run under test: with $DHC_INNER_RUN it starts a node with a Pod as any other package would.
const innerRun = "DHC_INNER_RUN"

func TestMain(m *testing.M) {
	if os.Getenv(innerRun) == "" {
		os.Exit(m.Run())
	}
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) error {
		cp := planes[0]
		if _, err := Start(cp, "node-a"); err != nil {
			return err
		}
		fmt.Println("FOLDER", cp.Folder)
		return awaitPod(cp)
	}, realcluster.Options{Name: "inner", Node: true, NoController: true})
}

func awaitPod(cp *realcluster.ControlPlane) error {
	seconds := int64(600)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stubborn"}, Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &seconds,
		Containers: []corev1.Container{{Name: "main", Image: Image, Args: []string{"ignore-term"}}}}}
	pods := cp.Client.CoreV1().Pods("default")
	if _, err := pods.Create(context.Background(), pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if now, err := pods.Get(context.Background(), pod.Name, metav1.GetOptions{}); err == nil && now.Status.Phase == corev1.PodRunning && now.Status.ContainerStatuses[0].State.Running != nil {
			fmt.Println("RUNNING")
			return nil
		}
	}
	return fmt.Errorf("the Pod does not run:\n%s", cp.Tails(30))
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
	errors  bytes.Buffer
}

func startInner(t *testing.T, behaviour string) *inner {
	t.Helper()
	run := &inner{command: exec.Command(os.Args[0], "-test.run=^TestInner$", "-test.v")}
	run.command.Env = append(os.Environ(), innerRun+"="+behaviour, "DHC_CLUSTER_LOGS="+t.TempDir())
	run.command.Stderr = &run.errors
	output, err := run.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = run.command.Process.Kill() })
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if folder, ok := strings.CutPrefix(lines.Text(), "FOLDER "); ok {
			run.folder = folder
		}
		if lines.Text() == "RUNNING" {
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

// left is what a run has on the machine: processes that name its folder, the Pod's program, mounts and control groups.
func (run *inner) left() (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && (bytes.Contains(text, []byte(run.folder)) || bytes.HasPrefix(text, []byte("/pod\x00ignore-term"))) {
			found = append(found, string(bytes.ReplaceAll(text[:min(len(text), 80)], []byte{0}, []byte{' '})))
		}
	}
	if text, err := os.ReadFile("/proc/self/mountinfo"); err != nil || bytes.Contains(text, []byte(run.folder)) {
		found = append(found, "a mount")
	}
	return found
}

func (run *inner) groups() []string {
	groups, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup/*", filepath.Base(run.folder)))
	group, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup", filepath.Base(run.folder)))
	return append(groups, group...)
}

func (run *inner) expectNothingLeft(t *testing.T, code int) {
	t.Helper()
	_ = run.command.Wait()
	if got := run.command.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, not %d: %s", got, code, &run.errors)
	}
	if left := append(run.left(), run.groups()...); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if _, err := os.Stat(run.folder); err == nil {
		t.Errorf("folder %s is left behind", run.folder)
	}
}

func TestARunWithAPodThatIgnoresSIGTERMLeavesNothingBehind(t *testing.T) {
	for behaviour, code := range map[string]int{"passes": 0, "fails": 1} {
		t.Run(behaviour, func(t *testing.T) { startInner(t, behaviour).expectNothingLeft(t, code) })
	}
}

func TestAnInterruptedRunLeavesNothingBehind(t *testing.T) {
	run := startInner(t, "blocks")
	if len(run.left()) < 5 || len(run.groups()) == 0 {
		t.Fatalf("the node is not there to be stopped: %q %q", run.left(), run.groups())
	}
	if err := run.command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	run.expectNothingLeft(t, 130)
}

func TestAKilledRunLeavesNoProcessAndNoMountAndTheNextRunRemovesTheRest(t *testing.T) {
	run := startInner(t, "blocks")
	if err := run.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = run.command.Wait()
	realcluster.Eventually(t, 10*time.Second, "everything on the node dies with it", func() error {
		if left := run.left(); len(left) > 0 {
			return fmt.Errorf("%q", left)
		}
		return nil
	})
	if _, err := realcluster.Sweep(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(run.folder); err == nil || len(run.groups()) > 0 {
		t.Errorf("folder %s or %q is still there", run.folder, run.groups())
	}
}
