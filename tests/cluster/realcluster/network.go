package realcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// A control plane with Options.Network, its nodes and the test itself live in a network namespace of their own, without a way out: what
// they need of addresses and ports is theirs, and the kernel removes all of it with the last process. In it
//   - the API server is at 10.96.0.1:443, as Pods are told (KUBERNETES_SERVICE_HOST);
//   - each node has an address of its own, which the API server and the kubelet use (kubectl logs);
//   - each Pod has one too (cmd/node-cni), from where it reaches the API server, and where the kubelet reaches its probes.
const (
	serviceAddress = "10.96.0.1" // the first of --service-cluster-ip-range
	serverAddress  = "192.0.2.1" // the API server's own

	// Gateway is the next hop of every Pod.
	Gateway = "10.244.0.1"
)

const ownNetwork = "DHC_IN_OWN_NETWORK"

func inOwnNetwork() bool { return os.Getenv(ownNetwork) != "" }

// againInOwnNetwork runs this test program once more, in a network namespace of its own, and returns its code. All programs are built
// before: there is nothing to download from in there.
func againInOwnNetwork() int {
	if _, err := EnsureNodeBinaries(say); err != nil {
		say("FAILED: %v", err)
		return 1
	}
	if err := fetchModules(); err != nil {
		say("FAILED: %v", err)
		return 1
	}
	program, err := os.Executable()
	if err != nil {
		say("FAILED: %v", err)
		return 1
	}
	command := exec.Command(program, os.Args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), ownNetwork+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGTERM}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	runtime.LockOSThread() // the parent death signal is sent when the thread ends that forked
	if err := command.Start(); err != nil {
		say("FAILED: starting in a network of its own: %v", err)
		return 1
	}
	go func() {
		for s := range signals {
			_ = command.Process.Signal(s)
		}
	}()
	var exit *exec.ExitError
	if err := command.Wait(); err != nil && !errors.As(err, &exit) {
		say("FAILED: %v", err)
		return 1
	}
	if code := command.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 1
}

// fetchModules brings what the node's own programs are built from.
func fetchModules() error {
	root, err := RepositoryFile("tests/cluster")
	if err != nil {
		return err
	}
	list := exec.Command("go", "list", "-deps", "./cmd/...")
	list.Dir = root
	if output, err := list.CombinedOutput(); err != nil {
		return fmt.Errorf("fetching the modules of the node's programs: %w\n%s", err, output)
	}
	return nil
}

var makeNetwork = sync.OnceValue(func() error {
	if err := ip("link", "set", "lo", "up"); err != nil {
		return err
	}
	for _, address := range []string{serviceAddress, serverAddress, Gateway} {
		if err := AddAddress(address); err != nil {
			return err
		}
	}
	return nil
})

// AddAddress gives the network one more address at which its processes may listen.
func AddAddress(address string) error { return ip("address", "add", address+"/32", "dev", "lo") }

func ip(arguments ...string) error {
	if !inOwnNetwork() {
		return errors.New("the machine's own network is not ours to change: only Main with Options.Network makes another")
	}
	if output, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(arguments, " "), err, output)
	}
	return nil
}
