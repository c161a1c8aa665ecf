package realnode

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// Signal sends one to the process of the Pod's container, as the machine's own kernel would: SIGKILL is a crash, SIGUSR2 the end of its work.
func (n *Node) Signal(t *testing.T, pod corev1.Pod, signal syscall.Signal) {
	t.Helper()
	hostname := cmp.Or(pod.Spec.Hostname, pod.Name) // an Indexed Job's Pods have one of their own
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	sent := 0
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, environment...), []byte("\x00HOSTNAME="+hostname+"\x00")) {
			continue
		}
		process, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(process, signal); err != nil {
			t.Fatal(err)
		}
		sent++
	}
	if sent != 1 {
		t.Fatalf("%s has %d processes, not one", pod.Name, sent)
	}
}
