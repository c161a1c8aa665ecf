package realcluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// module is one Go module whose tool dependencies are programs of the cluster.
type module struct {
	name     string // of its folder in the cache
	folder   string
	ldflags  string
	tags     string
	cgo      bool
	programs map[string]string // program -> package
	copies   map[string]copied // folder beside the programs -> what is in it
}

// copied is a folder of a Go module that a program needs beside it.
type copied struct{ module, folder string }

func controlPlaneModules() []module {
	return []module{
		{
			name:     "etcd",
			folder:   "etcd",
			ldflags:  "-s -w",
			programs: map[string]string{"etcd": "go.etcd.io/etcd/server/v3"},
		},
		{
			name:    "control-plane",
			folder:  Release().folder,
			ldflags: Release().ldflags(),
			programs: map[string]string{
				"kube-apiserver":          "k8s.io/kubernetes/cmd/kube-apiserver",
				"kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
				"kube-scheduler":          "k8s.io/kubernetes/cmd/kube-scheduler",
				"kubectl":                 "k8s.io/kubernetes/cmd/kubectl",
			},
		},
	}
}

func nodeModules() []module {
	return []module{
		{
			name:     "kubelet",
			folder:   Release().folder,
			ldflags:  Release().ldflags(),
			programs: map[string]string{"kubelet": "k8s.io/kubernetes/cmd/kubelet"},
		},
		{
			name:    "containerd",
			folder:  "containerd",
			ldflags: "-s -w",
			tags:    "no_btrfs no_devmapper no_zfs",
			programs: map[string]string{
				"containerd":              "github.com/containerd/containerd/v2/cmd/containerd",
				"containerd-shim-runc-v2": "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
				"ctr":                     "github.com/containerd/containerd/v2/cmd/ctr",
			},
		},
		{
			name:     "runc",
			folder:   "runc",
			ldflags:  "-s -w",
			tags:     "seccomp",
			cgo:      true,
			programs: map[string]string{"runc": "github.com/opencontainers/runc"},
		},
	}
}

// compileFlags halve the compiler's work (it spends half of it on inlining), at the cost of programs that need somewhat more
// processor time; what they do is the same. tests/cluster/run compiles the tests with them too: what both have is compiled once.
const compileFlags = "-l -dwarf=false"

// Binaries says where each program is, and each folder that was copied beside one.
type Binaries map[string]string

// EnsureBinaries builds what the cache lacks, and tells say what it does and how long it took. The cache is
// $DHC_CLUSTER_BIN, else device-health-controller/k8s-VERSION in the user's cache folder; a folder in it belongs to one
// content of go.mod and go.sum, so a changed pin rebuilds and an unchanged one never does.
func EnsureBinaries(say func(format string, args ...any)) (Binaries, error) {
	return ensureAll(controlPlaneModules(), say)
}

// EnsureNodeBinaries does the same, and for the programs of a node: kubelet, containerd and runc.
func EnsureNodeBinaries(say func(format string, args ...any)) (Binaries, error) {
	return ensureAll(append(controlPlaneModules(), nodeModules()...), say)
}

// cacheFolder is where programs are kept, and exists: $DHC_CLUSTER_BIN, else a folder in the user's cache.
func cacheFolder(name string) (string, error) {
	cache := os.Getenv("DHC_CLUSTER_BIN")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no cache folder for the programs of the cluster (set DHC_CLUSTER_BIN): %w", err)
		}
		cache = filepath.Join(user, "device-health-controller", name)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("the cache folder of the cluster's programs: %w", err)
	}
	return cache, nil
}

func ensureAll(modules []module, say func(string, ...any)) (Binaries, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	cache, err := cacheFolder("k8s-" + Release().Version)
	if err != nil {
		return nil, err
	}
	unlock, err := lockFile(filepath.Join(cache, "build.lock"), func() { say("another run is building the control plane, waiting for it") })
	if err != nil {
		return nil, err
	}
	defer unlock()
	found := Binaries{}
	for _, m := range modules {
		folder, err := m.ensure(root, cache, say)
		if err != nil {
			return nil, err
		}
		for program := range m.programs {
			found[program] = filepath.Join(folder, program)
		}
		for name := range m.copies {
			found[name] = filepath.Join(folder, name)
		}
	}
	return found, nil
}

func (m module) ensure(root, cache string, say func(string, ...any)) (string, error) {
	source := filepath.Join(root, m.folder)
	key, err := m.key(source)
	if err != nil {
		return "", err
	}
	done := filepath.Join(cache, m.name+"-"+key)
	if m.complete(done) {
		return done, nil
	}
	if _, err := exec.LookPath("go"); err != nil {
		return "", fmt.Errorf("the go command is needed to build %s and is not in PATH", m.folder)
	}
	say("building %d program(s) of %s into %s (minutes when Go's module and build caches are cold)", len(m.programs), source, done)
	began := time.Now()
	unfinished := done + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return "", err
	}
	if err := os.MkdirAll(unfinished, 0o755); err != nil {
		return "", err
	}
	var worked time.Duration
	for _, some := range m.builds(unfinished) {
		build := exec.Command("go", append([]string{"build", "-trimpath", "-gcflags=all=" + compileFlags, "-ldflags", m.ldflags, "-tags", m.tags}, some...)...)
		build.Dir = source
		cgo := "CGO_ENABLED=0"
		if m.cgo {
			cgo = "CGO_ENABLED=1"
		}
		build.Env = append(os.Environ(), cgo, "GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off")
		var output bytes.Buffer
		build.Stdout, build.Stderr = &output, &output
		if err := build.Run(); err != nil {
			return "", fmt.Errorf("building %s from %s: %w\n%s", some, source, err, lastLines(output.String(), 30))
		}
		worked += build.ProcessState.UserTime() + build.ProcessState.SystemTime()
	}
	for name, from := range m.copies {
		if err := from.copy(source, filepath.Join(unfinished, name)); err != nil {
			return "", err
		}
	}
	say("built %s in %s, with %s of processor time", m.name, time.Since(began).Round(time.Second), worked.Round(time.Second))
	if err := os.RemoveAll(done); err != nil {
		return "", err
	}
	return done, os.Rename(unfinished, done)
}

// copy copies the folder from the module's version that the pins in source name.
func (c copied) copy(source, target string) error {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", c.module)
	list.Dir, list.Env = source, append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	folder, err := list.Output()
	if err != nil {
		return fmt.Errorf("where %s is: %w", c.module, err)
	}
	return os.CopyFS(target, os.DirFS(filepath.Join(strings.TrimSpace(string(folder)), c.folder)))
}

// builds are the arguments of each go build that is needed: one for all programs that are called as their package is, so that
// one is linked while others are compiled.
func (m module) builds(folder string) (builds [][]string) {
	together := []string{"-o", folder + string(filepath.Separator)}
	for _, program := range slices.Sorted(maps.Keys(m.programs)) {
		if pkg := m.programs[program]; path.Base(pkg) == program {
			together = append(together, pkg)
		} else {
			builds = append(builds, []string{"-o", filepath.Join(folder, program), pkg})
		}
	}
	if len(together) > 2 {
		builds = append(builds, together)
	}
	return builds
}

func (m module) complete(folder string) bool {
	for program := range m.programs {
		if info, err := os.Stat(filepath.Join(folder, program)); err != nil || info.Mode()&0o111 == 0 {
			return false
		}
	}
	for name := range m.copies {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			return false
		}
	}
	return true
}

// key changes whenever the programs would: with the pins, the flags, the list of programs and the machine.
func (m module) key(source string) (string, error) {
	sum := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", fmt.Errorf("the control plane's pins: %w", err)
		}
		if name == "go.mod" && m.folder == Release().folder && !bytes.Contains(text, []byte("k8s.io/kubernetes v"+Release().Version+" ")) {
			return "", fmt.Errorf("%s/go.mod does not require k8s.io/kubernetes v%s, which this release promises", source, Release().Version)
		}
		sum.Write(text)
	}
	ours, err := filepath.Glob(filepath.Join(source, "*", "*.go")) // a main of ours, beside its pins
	if err != nil {
		return "", err
	}
	for _, name := range ours {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		sum.Write(text)
	}
	fmt.Fprintln(sum, compileFlags, m.ldflags, len(m.programs), runtime.GOOS, runtime.GOARCH)
	if m.tags != "" {
		fmt.Fprintln(sum, m.tags)
	}
	for _, name := range slices.Sorted(maps.Keys(m.copies)) {
		fmt.Fprintln(sum, name, m.copies[name])
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// moduleRoot is the folder of this Go module, found upwards from the working folder.
func moduleRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; folder = filepath.Dir(folder) {
		text, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module device-health.io/controller/tests/cluster\n") {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("tests/cluster/go.mod was not found above the working folder")
		}
	}
}

// RepositoryFile is the path of a file of this repository, named from its root.
func RepositoryFile(name string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(filepath.Dir(root)), name), nil
}

func lockFile(path string, waiting func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		waiting()
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
			file.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
	}
	return func() { file.Close() }, nil
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > count {
		lines = lines[len(lines)-count:]
	}
	return strings.Join(lines, "\n")
}
