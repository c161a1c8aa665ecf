package realcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const runFolderPrefix = "device-health-cluster-"

// newRunFolder makes a folder for one control plane and locks it: a folder whose lock is free belongs to a run that was
// killed, and the next run (or Sweep) removes it.
func newRunFolder(name string) (folder string, release func(), err error) {
	folder, err = os.MkdirTemp("", runFolderPrefix+name+"-")
	if err != nil {
		return "", nil, err
	}
	lock, err := os.OpenFile(filepath.Join(folder, "owner.lock"), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return "", nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return "", nil, fmt.Errorf("locking the run's folder: %w", err)
	}
	return folder, func() { lock.Close() }, nil
}

// Sweep removes the folders of runs that were killed, and names them. Their processes died with them (parent death signal).
func Sweep() (removed []string, err error) {
	folders, err := filepath.Glob(filepath.Join(os.TempDir(), runFolderPrefix+"*"))
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		lock, err := os.OpenFile(filepath.Join(folder, "owner.lock"), os.O_RDWR|syscall.O_CLOEXEC, 0)
		if err != nil {
			continue // not yet locked by a run that is starting, or somebody else's
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			if err := errors.Join(removeCgroups(filepath.Base(folder)), os.RemoveAll(folder)); err != nil {
				lock.Close()
				return removed, err
			}
			removed = append(removed, folder)
		}
		lock.Close()
	}
	return removed, nil
}

// removeCgroups removes the control groups of a real node, which are named after its run's folder. No process is left in them
// when this is called, though the kernel may need a moment to know it.
func removeCgroups(name string) error {
	var folders []string
	for _, hierarchy := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		roots, _ := filepath.Glob(filepath.Join(hierarchy, name))
		for _, root := range roots {
			_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.IsDir() {
					folders = append(folders, path)
				}
				return nil
			})
		}
	}
	for _, folder := range slices.Backward(folders) {
		for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			err := syscall.Rmdir(folder)
			if err == nil || errors.Is(err, syscall.ENOENT) {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("control group %s: %w", folder, err)
			}
		}
	}
	return nil
}
