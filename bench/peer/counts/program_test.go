package counts

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"device-health.io/controller/bench/peer/standin"
)

// patience is for a machine on which much else runs; no claim about time.
const patience = 2 * time.Minute

// program is our controller at a stand-in that runs within this process.
type program struct {
	*standin.Server
	t       *testing.T
	command *exec.Cmd
	log     bytes.Buffer
	ended   chan error
}

// run starts the controller that DHC_BINARY names as it runs in a cluster: leader election on, its state in its ConfigMap.
func run(t *testing.T, pods, unhealthy int) *program {
	t.Helper()
	binary := os.Getenv("DHC_BINARY")
	if info, err := os.Stat(binary); err != nil || info.Mode()&0o111 == 0 {
		t.Fatalf("DHC_BINARY=%q is not a program: build it, or name one", binary)
	}
	p := &program{t: t, ended: make(chan error, 1)}
	p.Server = standin.New(standin.Options{World: standin.World{Pods: pods, Seed: 1}, Unhealthy: unhealthy, Linger: 10 * time.Millisecond})
	kubeconfig, err := p.Start(t.TempDir(), io.Discard) // it complains of the connections that we cut
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	policy, err := filepath.Abs("../policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p.command = exec.Command(binary, "run", "--kubeconfig", kubeconfig, "--config", policy, "--mode", "enforce", "--events=false", "--log-level", "warn",
		"--metrics-bind-address", "127.0.0.1:0", "--health-probe-bind-address", "0", "--detail-bind-address", "0")
	p.command.Env = append(os.Environ(), "POD_NAMESPACE=device-health-system", "POD_NAME=device-health-controller-0")
	p.command.Stdout, p.command.Stderr = &p.log, &p.log
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.command.Wait() }()
	t.Cleanup(p.stop)
	return p
}

// stop ends the controller, which must end well.
func (p *program) stop() {
	p.command.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.ended:
		if err != nil || p.t.Failed() {
			p.t.Errorf("the controller has ended with %v and said:\n%s", err, &p.log)
		}
	case <-time.After(patience):
		p.command.Process.Kill()
		p.t.Error("the controller does not end")
	}
}

// until waits for what is to be counted.
func (p *program) until(what string, asked func(standin.Stats) bool) standin.Stats {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	if err := p.Wait(ctx, asked); err != nil {
		p.t.Fatalf("not seen within %v: %s; counted: %+v", patience, what, p.Stats())
	}
	return p.Stats()
}

// renewals waits until the controller has renewed its Lease so many times: it is alive, and has had all that time for anything else.
func (p *program) renewals(n int) standin.Stats {
	p.t.Helper()
	_, before := p.Stats().Writes()
	return p.until("renewals of the Lease", func(s standin.Stats) bool {
		_, leases := s.Writes()
		return leases >= before+n
	})
}

// atRest waits until nothing but the Lease was written over so many renewals.
func (p *program) atRest(n int) standin.Stats {
	p.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		before, _ := p.Stats().Writes()
		s := p.renewals(n)
		if after, _ := s.Writes(); after == before {
			return s
		}
	}
	p.t.Fatalf("it does not come to rest within %v: %v", patience, p.Stats().Counts)
	return standin.Stats{}
}
