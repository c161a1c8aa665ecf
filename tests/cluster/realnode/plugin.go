package realnode

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realcluster"
)

// Plugin is a device plugin of one resource, which only one test uses.
type Plugin struct {
	Resource string

	node    *Node
	name    string
	mutex   sync.Mutex
	devices map[string]string
	process *realcluster.Process
	history []capacity
}

type capacity struct {
	at          time.Time
	version     string // of the Node
	all, usable int
}

// NewPlugin starts a plugin with healthy devices gpu-0, gpu-1 and so on, and waits until the node offers them. It ends with the test.
func (n *Node) NewPlugin(t *testing.T, count int) *Plugin {
	t.Helper()
	var ids []string
	for i := range count {
		ids = append(ids, fmt.Sprint("gpu-", i))
	}
	return n.NewPluginOf(t, ids...)
}

// NewPluginOf does the same with devices of these IDs.
func (n *Node) NewPluginOf(t *testing.T, ids ...string) *Plugin {
	t.Helper()
	name := realcluster.Unique("gpu")
	p := &Plugin{Resource: "example.com/" + name, node: n, name: name, devices: map[string]string{}}
	for _, id := range ids {
		p.devices[id] = "Healthy"
	}
	p.write(t)
	p.Start(t)
	t.Cleanup(func() { p.Kill(t) })
	p.follow(t)
	p.AwaitCapacity(t, len(ids), len(ids))
	return p
}

// follow writes down what the node's status shows for the resource, until the test ends.
func (p *Plugin) follow(t *testing.T) {
	t.Helper()
	stream, err := p.node.cp.Client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + p.node.Name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stream.Stop)
	go func() {
		for event := range stream.ResultChan() {
			if now, ok := event.Object.(*corev1.Node); ok {
				all, usable := p.of(now)
				p.mutex.Lock()
				if last := len(p.history) - 1; last < 0 || p.history[last].all != all || p.history[last].usable != usable {
					p.history = append(p.history, capacity{time.Now(), now.ResourceVersion, all, usable})
				}
				p.mutex.Unlock()
			}
		}
	}()
}

func (p *Plugin) of(node *corev1.Node) (all, usable int) {
	has, can := node.Status.Capacity[corev1.ResourceName(p.Resource)], node.Status.Allocatable[corev1.ResourceName(p.Resource)]
	return int(has.Value()), int(can.Value())
}

// History is what the node's status has shown for the resource, for the log of a test.
func (p *Plugin) History() (lines []string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, seen := range p.history {
		lines = append(lines, fmt.Sprintf("%s node: capacity %d, allocatable %d", seen.at.Format(time.StampMilli), seen.all, seen.usable))
	}
	return lines
}

// AllocatableReached is the Node's version in which its status last began to show this number, "" if it has not been seen to.
func (p *Plugin) AllocatableReached(number int) (version string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, seen := range p.history {
		if seen.usable == number {
			version = seen.version
		}
	}
	return version
}

// Start starts the plugin, the first time or again, with the devices it has now.
func (p *Plugin) Start(t *testing.T) {
	t.Helper()
	var err error
	p.process, err = p.node.Run(p.node.Name+"-plugin-"+p.name, filepath.Join(p.node.programs, "device-plugin"),
		"--resource", p.Resource, "--file", p.file(), "--socket", p.name+".sock")
	if err != nil {
		t.Fatal(err)
	}
	explain(t, p.process)
}

// Kill ends the plugin as a crash would.
func (p *Plugin) Kill(t *testing.T) {
	t.Helper()
	_ = p.process.Signal(syscall.SIGKILL)
	if err := p.process.Stop(0); err != nil {
		t.Error(err)
	}
}

// Set changes the health of a device, which the plugin reports within 50 ms.
func (p *Plugin) Set(t *testing.T, device, health string) {
	t.Helper()
	p.mutex.Lock()
	p.devices[device] = health
	p.mutex.Unlock()
	p.write(t)
}

// Remove lets a device vanish from the plugin's list.
func (p *Plugin) Remove(t *testing.T, device string) {
	t.Helper()
	p.mutex.Lock()
	delete(p.devices, device)
	p.mutex.Unlock()
	p.write(t)
}

// AwaitCapacity waits until the node's status shows these numbers for the resource.
func (p *Plugin) AwaitCapacity(t *testing.T, capacity, allocatable int) {
	t.Helper()
	realcluster.Eventually(t, time.Minute, fmt.Sprintf("capacity %d and allocatable %d of %s", capacity, allocatable, p.Resource), func() error {
		has, can, err := p.Capacity(t)
		if err == nil && (has != capacity || can != allocatable) {
			err = fmt.Errorf("they are %d and %d", has, can)
		}
		return err
	})
}

// Capacity and allocatable that the node's status now shows for the resource.
func (p *Plugin) Capacity(t *testing.T) (capacity, allocatable int, err error) {
	t.Helper()
	node, err := p.node.cp.Client.CoreV1().Nodes().Get(t.Context(), p.node.Name, metav1.GetOptions{})
	if err != nil {
		return 0, 0, err
	}
	capacity, allocatable = p.of(node)
	return capacity, allocatable, nil
}

func (p *Plugin) file() string { return p.node.file("state/" + p.name + ".json") }

func (p *Plugin) write(t *testing.T) {
	t.Helper()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	writeState(t, p.file(), p.devices)
}

// writeState replaces the file at once, as its reader may look at any time.
func writeState(t *testing.T, path string, state any) {
	t.Helper()
	text, err := json.Marshal(state)
	if err == nil {
		err = os.WriteFile(path+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// explain prints the end of a program's log if the test fails.
func explain(t *testing.T, p *realcluster.Process) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("---- %s, last 20 lines\n%s", p.Name, p.Tail(20))
		}
	})
}

// StaticPod lets the kubelet run a pod that the API server did not give it, until the test ends.
func (n *Node) StaticPod(t *testing.T, name, manifest string) {
	t.Helper()
	path := n.file("static-pods/" + strings.ReplaceAll(name, "/", "-") + ".yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(path) })
}
