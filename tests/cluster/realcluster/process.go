package realcluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is one program in a process group of its own, with its output in a file. It dies with this process however that
// ends: asked to stop by Stop, or by the kernel (parent death signal) when this process is killed.
type Process struct {
	Name    string
	LogPath string

	command *exec.Cmd
	log     *os.File
	done    chan struct{}
	exit    error
}

// The parent death signal is sent when the *thread* that forked ends, and Go ends threads as it likes: all programs are
// started by one goroutine that owns its thread for ever.
var forker = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for step := range work {
			step()
		}
	}()
	return work
})

var running struct {
	sync.Mutex
	processes map[*Process]bool
}

// StartProcess starts a program whose standard output and error go to logPath.
func StartProcess(name, logPath, program string, arguments ...string) (*Process, error) {
	return startProcess(0, name, logPath, program, arguments...)
}

// StartIsolated starts a program as process 1 of a PID and a mount namespace of its own: everything in them ends with it.
func StartIsolated(name, logPath, program string, arguments ...string) (*Process, error) {
	return startProcess(syscall.CLONE_NEWPID|syscall.CLONE_NEWNS, name, logPath, program, arguments...)
}

func startProcess(namespaces uintptr, name, logPath, program string, arguments ...string) (*Process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = log, log
	command.Dir = filepath.Dir(logPath)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: namespaces}
	started := make(chan error)
	forker() <- func() { started <- command.Start() }
	if err := <-started; err != nil {
		log.Close()
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &Process{Name: name, LogPath: logPath, command: command, log: log, done: make(chan struct{})}
	running.Lock()
	if running.processes == nil {
		running.processes = map[*Process]bool{}
	}
	running.processes[p] = true
	running.Unlock()
	go func() {
		p.exit = command.Wait()
		log.Close()
		close(p.done)
	}()
	return p, nil
}

// Pid is the program's process id, which is also its group's.
func (p *Process) Pid() int { return p.command.Process.Pid }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode waits for the program's end and says how it ended: its code, or -1 after a signal.
func (p *Process) ExitCode() int {
	<-p.done
	return p.command.ProcessState.ExitCode()
}

// Signal sends a signal to the program's whole group.
func (p *Process) Signal(signal syscall.Signal) error { return syscall.Kill(-p.Pid(), signal) }

// Stop asks the program to end, kills its group after grace, and returns an error that names what is still alive.
func (p *Process) Stop(grace time.Duration) error {
	select {
	case <-p.done:
	default:
		_ = p.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(grace):
		}
	}
	_ = p.Signal(syscall.SIGKILL) // also what the program may have left in its group
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		return fmt.Errorf("%s (pid %d) is still alive 10 s after SIGKILL", p.Name, p.Pid())
	}
	running.Lock()
	delete(running.processes, p)
	running.Unlock()
	for deadline := time.Now().Add(5 * time.Second); groupLives(p.Pid()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("a child of %s (process group %d) is still alive", p.Name, p.Pid())
		}
	}
	return nil
}

// groupLives says whether a process group has a member other than zombies, which wait for whoever inherited them.
func groupLives(group int) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// pid (name) state parent group ...; the name may contain anything, blanks and brackets too.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" {
			return true
		}
	}
	return false
}

// Tail is the end of the program's log.
func (p *Process) Tail(lines int) string { return tail(p.LogPath, lines) }

func tail(path string, lines int) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	const most = 64 * 1024
	if info, err := file.Stat(); err == nil && info.Size() > most {
		_, _ = file.Seek(-most, 2)
	}
	text := make([]byte, most)
	n, _ := file.Read(text)
	return lastLines(strings.TrimSpace(string(text[:n])), lines)
}

func stopAllProcesses() (survivors []string) {
	running.Lock()
	var all []*Process
	for p := range running.processes {
		all = append(all, p)
	}
	running.Unlock()
	for _, p := range all {
		if err := p.Stop(0); err != nil {
			survivors = append(survivors, err.Error())
		}
	}
	return survivors
}
