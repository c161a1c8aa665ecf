package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a process may take to end.
const patience = 30 * time.Second

// process is a controller that we started.
type process struct {
	*exec.Cmd
	log   string
	ended chan struct{}
}

// start runs the contender with its output in a log.
func start(c contender, kubeconfig, folder string) (*process, error) {
	log, err := os.Create(filepath.Join(folder, c.name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	argv := make([]string, len(c.argv))
	for i, word := range c.argv {
		argv[i] = strings.ReplaceAll(word, "{kubeconfig}", kubeconfig)
	}
	p := &process{Cmd: exec.Command(argv[0], argv[1:]...), log: log.Name(), ended: make(chan struct{})}
	p.Stdout, p.Stderr, p.Env = log, log, append(os.Environ(), c.environment...)
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.Wait()
		close(p.ended)
	}()
	return p, nil
}

// alive is an error when the controller has ended by itself.
func (p *process) alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("it has ended (%s); see %s", p.ProcessState, p.log)
	default:
		return nil
	}
}

// stop sends SIGTERM and says how many seconds the end took.
func (p *process) stop() (float64, error) {
	at := time.Now()
	p.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return time.Since(at).Seconds(), nil
	case <-time.After(patience):
		p.Process.Kill()
		return 0, errors.New("SIGTERM does not end it")
	}
}

// usage is the CPU time in seconds, user and system, and VmRSS and VmHWM in MB.
func (p *process) usage() (cpu, rss, peak float64) {
	var t unix.Timespec
	// CPUCLOCK_SCHED of a whole process: what /proc/PID/stat has, to the nanosecond. Source: clock_getcpuclockid(3), linux/posix-timers.h.
	if unix.ClockGettime(int32(^p.Process.Pid<<3|2), &t) == nil {
		cpu = float64(t.Nano()) / 1e9
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	return cpu, field(string(status), "VmRSS:") / 1024, field(string(status), "VmHWM:") / 1024
}

// field reads the number after a word; 0 without one.
func field(text, word string) (v float64) {
	_, rest, _ := strings.Cut(text, word)
	fmt.Sscan(rest, &v)
	return v
}
