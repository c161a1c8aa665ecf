package realnode

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"device-health.io/controller/tests/cluster/realcluster"
)

// Signal sends one to the process of the Pod's container, as the machine's own kernel would: SIGKILL is a crash, SIGUSR2 the end of its work.
func (n *Node) Signal(t *testing.T, pod corev1.Pod, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(n.AwaitListening(t, pod), signal); err != nil {
		t.Fatal(err)
	}
}

// AwaitListening waits until the program of the Pod's container hears signals, which on a loaded machine is some time after its container
// is called running. Returns the process.
func (n *Node) AwaitListening(t *testing.T, pod corev1.Pod) (process int) {
	t.Helper()
	hostname := cmp.Or(pod.Spec.Hostname, pod.Name) // an Indexed Job's Pods have one of their own
	realcluster.Eventually(t, time.Minute, pod.Name+"'s program listens", func() error {
		files, _ := filepath.Glob("/proc/[0-9]*/environ")
		found := 0
		for _, file := range files {
			environment, err := os.ReadFile(file)
			if err != nil || !bytes.Contains(append([]byte{0}, environment...), []byte("\x00HOSTNAME="+hostname+"\x00")) {
				continue
			}
			folder := filepath.Dir(file)
			if name, err := os.ReadFile(filepath.Join(folder, "comm")); err != nil || string(name) != "ready\n" {
				return fmt.Errorf("it is called %q, %v", name, err)
			}
			if process, err = strconv.Atoi(filepath.Base(folder)); err != nil {
				return err
			}
			found++
		}
		if found != 1 {
			return fmt.Errorf("it has %d processes, not one", found)
		}
		return nil
	})
	return process
}
