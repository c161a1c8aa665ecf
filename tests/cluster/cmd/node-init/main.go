// Command node-init is process 1 of a node: it lives in a mount and PID namespace of its own, so that all mounts and processes of
// the node end with it, however it ends. It gives the node private places where the kubelet and containerd have fixed paths.
//
//	node-init READY GROUP    READY is a file that it makes when all is prepared, GROUP the name of the node's control group
package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// The namespaces of this process are those of its main thread.
func init() { runtime.LockOSThread() }

func main() {
	if err := errors.Join(prepare(), confine(os.Args[2])); err != nil {
		fmt.Fprintln(os.Stderr, "node-init:", err)
		os.Exit(1)
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	if err := os.WriteFile(os.Args[1], nil, 0o600); err != nil { // whoever started us waits for this file
		fmt.Fprintln(os.Stderr, "node-init:", err)
		os.Exit(1)
	}
	for s := range signals {
		if s != syscall.SIGCHLD {
			return // and the kernel kills everything else in here
		}
		for { // shims whose parent is gone
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}

func prepare() error {
	// First away from the host, then shared among the node's own, as volumes with mount propagation need it.
	for _, propagation := range []uintptr{syscall.MS_PRIVATE, syscall.MS_SHARED} {
		if err := syscall.Mount("", "/", "", syscall.MS_REC|propagation, ""); err != nil {
			return fmt.Errorf("mount propagation of /: %w", err)
		}
	}
	if err := syscall.Mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	// The device plugins' folder, the shims' sockets and the old container log links have paths that no flag changes.
	for _, path := range []string{"/var/lib", "/var/log", "/run"} {
		if err := syscall.Mount("tmpfs", path, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mounting a tmpfs on %s: %w", path, err)
		}
	}
	for _, path := range []string{"/var/lib/kubelet/device-plugins", "/run/containerd"} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// confine makes a control group in each hierarchy and a namespace in which it is the root: every group that runc makes is under it, where
// whoever started us can remove it.
func confine(group string) error {
	hierarchies, err := hierarchies()
	if err != nil {
		return err
	}
	for _, all := range hierarchies {
		ours := filepath.Join(all, group)
		if err := os.Mkdir(ours, 0o755); err != nil && !os.IsExist(err) {
			return fmt.Errorf("a control group of our own: %w", err)
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // version 1: empty in a new group, and no process may enter it then
			if text, err := os.ReadFile(filepath.Join(all, file)); err == nil {
				if err := os.WriteFile(filepath.Join(ours, file), text, 0o644); err != nil {
					return err
				}
			}
		}
		if err := os.WriteFile(filepath.Join(ours, "cgroup.procs"), []byte("0"), 0o644); err != nil {
			return fmt.Errorf("entering our control group: %w", err)
		}
	}
	// One thread is enough: those who join the namespace later name this process, whose main thread it is (main locks it).
	if err := syscall.Unshare(cloneNewCgroup); err != nil {
		return fmt.Errorf("a control group namespace: %w", err)
	}
	for _, all := range hierarchies {
		if err := syscall.Mount(filepath.Join(all, group), all, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("binding our control group over %s: %w", all, err)
		}
	}
	return nil
}

const cloneNewCgroup = 0x02000000

func hierarchies() (mountpoints []string, err error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(string(mounts), "\n") {
		// id parent major:minor root mountpoint options [tags] - type source options
		front, back, _ := strings.Cut(line, " - ")
		fields := strings.Fields(front)
		if strings.HasPrefix(back, "cgroup") && len(fields) > 4 && strings.HasPrefix(fields[4], "/sys/fs/cgroup") {
			mountpoints = append(mountpoints, fields[4])
		}
	}
	return mountpoints, nil
}
