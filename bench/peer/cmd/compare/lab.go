package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"device-health.io/controller/bench/peer/standin"
)

// lab is a stand-in that runs as a process of its own.
type lab struct {
	command    *exec.Cmd
	Control    string
	Kubeconfig string
	PodBytes   float64 `json:"pod_bytes"`
}

func (p plan) newLab(pods int, protobuf bool) (*lab, error) {
	l := &lab{command: exec.Command(beside("standin"), "--pods", strconv.Itoa(pods), "--nodes", strconv.Itoa(p.nodes), "--seed", strconv.FormatUint(p.seed, 10),
		"--unhealthy", "1", "--folder", p.folder, "--protobuf="+strconv.FormatBool(protobuf))}
	l.command.Stderr, l.command.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := l.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := l.command.Start(); err != nil {
		return nil, err
	}
	return l, json.NewDecoder(bufio.NewReader(out)).Decode(l)
}

func (l *lab) close() {
	l.command.Process.Kill()
	l.command.Wait()
}

func (l *lab) call(method, path string, into any) error {
	request, err := http.NewRequest(method, l.Control+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}

func (l *lab) stats() (s standin.Stats, err error) {
	err = l.call("GET", "/stats", &s)
	return s, err
}

// ask is a request whose answer says nothing.
func (l *lab) ask(path string) error {
	var ignored any
	return l.call("POST", path, &ignored)
}

// unhealthy lets the devices of k pods fail, evenly over so long; it returns the batch's number.
func (l *lab) unhealthy(k int, over time.Duration) (batch int, err error) {
	var b struct{ Batch int }
	err = l.call("POST", fmt.Sprintf("/unhealthy?k=%d&over=%g", k, over.Seconds()), &b)
	return b.Batch, err
}
