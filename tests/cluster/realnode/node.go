// Package realnode joins a real node to a control plane of realcluster: containerd, runc and a kubelet with credentials of its own, and on
// it device plugins and DRA drivers that a test scripts. Between a driver and the API server nothing is simulated.
package realnode

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realcluster"
)

// Node is a running node. All its processes and mounts are in namespaces that end with the process of cmd/node-init.
type Node struct {
	Name string

	cp         *realcluster.ControlPlane
	folder     string
	address    string // where its kubelet listens
	programs   string // our own: cmd/pod and so on
	init       *realcluster.Process
	containerd *realcluster.Process
	kubelet    *realcluster.Process
}

// Start joins a node and returns when it is Ready, in some ten seconds. One node per machine and control plane is plenty; several do not
// hurt each other.
func Start(cp *realcluster.ControlPlane, name string) (*Node, error) {
	if os.Getuid() != 0 {
		return nil, fmt.Errorf("a real node needs root: namespaces, mounts and control groups")
	}
	n := &Node{Name: name, cp: cp, folder: filepath.Join(cp.Folder, name)}
	n.programs = filepath.Join(n.folder, "programs")
	for _, hidden := range []string{"/run/", "/var/lib/", "/var/log/"} {
		if strings.HasPrefix(cp.Folder+"/", hidden) {
			return nil, fmt.Errorf("the run's folder %s is under %s, which the node covers with a place of its own: set TMPDIR", cp.Folder, hidden)
		}
	}
	for _, folder := range []string{n.programs, n.file("cni"), n.file("cdi"), n.file("static-pods"), n.file("pod-logs"), n.file("state")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
	}
	cp.AtStop(n.stop)
	for what, step := range []func() error{n.buildPrograms, n.writeFiles, n.enter, n.startContainerd, n.StartKubelet, n.awaitReady} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("node %s, step %d of its start: %w\n%s", name, what+1, err, cp.Tails(30))
		}
	}
	return n, nil
}

func (n *Node) file(name string) string { return filepath.Join(n.folder, name) }

// buildPrograms builds what runs in and beside the pods from this module: seconds, as Go caches it.
func (n *Node) buildPrograms() error {
	root, err := realcluster.RepositoryFile("tests/cluster")
	if err != nil {
		return err
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", n.programs+"/",
		"./cmd/node-init", "./cmd/node-cni", "./cmd/pod", "./cmd/device-plugin", "./cmd/dra-driver")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the node's own programs: %w\n%s", err, output)
	}
	return writeImage(n.file("image.tar"), filepath.Join(n.programs, "pod"))
}

// enter makes the namespaces and waits until their first process has prepared them.
func (n *Node) enter() error {
	ready := n.file("ready")
	var err error
	n.init, err = realcluster.StartIsolated(n.Name+"-init", filepath.Join(n.cp.Logs, n.Name+"-init.log"), filepath.Join(n.programs, "node-init"),
		ready, filepath.Base(n.cp.Folder))
	if err != nil {
		return err
	}
	n.cp.Add(n.init)
	return n.await(n.init, time.Minute, "its namespaces", func() error {
		_, err := os.Stat(ready)
		return err
	})
}

// Run starts a program in the node's namespaces, with its log beside those of the other components.
func (n *Node) Run(name, program string, arguments ...string) (*realcluster.Process, error) {
	search := strings.Join([]string{filepath.Dir(n.cp.Binaries["containerd-shim-runc-v2"]), os.Getenv("PATH")}, ":")
	inside := append([]string{"--target", strconv.Itoa(n.init.Pid()), "--mount", "--pid", "--cgroup", "--", "/usr/bin/env", "PATH=" + search, program}, arguments...)
	return realcluster.StartProcess(name, filepath.Join(n.cp.Logs, name+".log"), "nsenter", inside...)
}

func (n *Node) startContainerd() (err error) {
	if n.containerd, err = n.Run(n.Name+"-containerd", n.cp.Binaries["containerd"], "--config", n.file("containerd.toml")); err != nil {
		return err
	}
	n.cp.Add(n.containerd)
	if err := n.await(n.containerd, 2*time.Minute, "containerd", func() error { return n.ctr("version") }); err != nil {
		return err
	}
	return n.ImportImage(n.file("image.tar"))
}

// ImportImage puts an image into the node's store, from an archive as `docker save` writes it.
func (n *Node) ImportImage(archive string) error {
	return n.ctr("--namespace", "k8s.io", "images", "import", "--snapshotter", "native", "--local", archive)
}

func (n *Node) ctr(arguments ...string) error {
	output, err := exec.Command(n.cp.Binaries["ctr"], append([]string{"--address", n.file("containerd.sock")}, arguments...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %s: %w: %s", strings.Join(arguments, " "), err, bytes.TrimSpace(output))
	}
	return nil
}

// StartKubelet starts it, the first time or again; pods and their containers live on without it.
func (n *Node) StartKubelet() (err error) {
	arguments := []string{"--kubeconfig=" + n.file("kubelet.kubeconfig"), "--config=" + n.file("kubelet.yaml"), "--root-dir=/var/lib/kubelet", "--hostname-override=" + n.Name}
	if n.cp.Options.Network {
		arguments = append(arguments, "--node-ip="+n.address) // where the API server finds it
	}
	n.kubelet, err = n.Run(n.Name+"-kubelet", n.cp.Binaries["kubelet"], arguments...)
	if err == nil {
		n.cp.Add(n.kubelet)
	}
	return err
}

// StopKubelet ends it as an update would.
func (n *Node) StopKubelet() error { return n.kubelet.Stop(10 * time.Second) }

func (n *Node) awaitReady() error {
	return n.await(n.kubelet, 3*time.Minute, "Ready", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		node, err := n.cp.Client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0 {
				return nil
			}
		}
		return fmt.Errorf("conditions %+v, taints %+v", node.Status.Conditions, node.Spec.Taints)
	})
}

func (n *Node) await(p *realcluster.Process, limit time.Duration, what string, try func() error) error {
	for deadline := time.Now().Add(limit); ; {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("%s ended with code %d before %s was there", p.Name, p.ExitCode(), what)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s not there after %s: %w", what, limit, err)
		}
	}
}

// stop ends the kubelet first, so that nothing is started any more, and then everything at once with the node's first process.
func (n *Node) stop() (survivors []string) {
	for _, p := range []*realcluster.Process{n.kubelet, n.init, n.containerd} {
		if p == nil {
			continue
		}
		if err := p.Stop(2 * time.Second); err != nil {
			survivors = append(survivors, err.Error())
		}
	}
	if n.init != nil {
		survivors = append(survivors, n.left()...)
	}
	return survivors
}

// left are the processes that still name the node's folder, which none may once its first process has ended.
func (n *Node) left() (found []string) {
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		found = nil
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err == nil && bytes.Contains(text, []byte(n.folder+"/")) && !bytes.HasPrefix(text, []byte("nsenter")) {
				found = append(found, fmt.Sprintf("a process of node %s: %s", n.Name, bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
			}
		}
		if len(found) == 0 || time.Now().After(deadline) {
			return found
		}
	}
}

// Kill ends the kubelet as a crash would.
func (n *Node) Kill() error {
	_ = n.kubelet.Signal(syscall.SIGKILL)
	return n.kubelet.Stop(0)
}
