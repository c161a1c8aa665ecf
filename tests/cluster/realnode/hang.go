package realnode

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// HangRuntime stops the shim of a Pod, so that nothing can end its containers while the kubelet and containerd are well: as near as one
// gets to a process that hangs in a device's driver. release, or the end of the test, lets it go on.
func (n *Node) HangRuntime(t *testing.T, pod corev1.Pod) (release func()) {
	t.Helper()
	shim := 0
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, environment...), []byte("\x00HOSTNAME="+pod.Name+"\x00")) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		shim, _ = strconv.Atoi(fields[1])
	}
	name, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(shim), "cmdline"))
	if !bytes.Contains(name, []byte("containerd-shim")) {
		t.Fatalf("the parent of %s's container is not a shim but %q", pod.Name, name)
	}
	if err := syscall.Kill(shim, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	release = func() { _ = syscall.Kill(shim, syscall.SIGCONT) }
	t.Cleanup(release)
	return release
}
