package realcluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// KubernetesVersion is the release that control-plane/go.mod names; the binaries report it as their own.
const KubernetesVersion = "1.37.1"

// module is one Go module whose tool dependencies are programs of the cluster.
type module struct {
	folder   string
	ldflags  string
	programs map[string]string // program -> package
}

var modules = []module{
	{
		folder:   "etcd",
		ldflags:  "-s -w",
		programs: map[string]string{"etcd": "go.etcd.io/etcd/server/v3"},
	},
	{
		folder: "control-plane",
		ldflags: "-s -w -X k8s.io/component-base/version.gitVersion=v" + KubernetesVersion +
			" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37",
		programs: map[string]string{
			"kube-apiserver":          "k8s.io/kubernetes/cmd/kube-apiserver",
			"kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
			"kube-scheduler":          "k8s.io/kubernetes/cmd/kube-scheduler",
			"kubectl":                 "k8s.io/kubernetes/cmd/kubectl",
		},
	},
}

// Binaries says where each program is.
type Binaries map[string]string

// EnsureBinaries builds what the cache lacks, and tells say what it does and how long it took. The cache is
// $DHC_CLUSTER_BIN, else device-health-controller/k8s-VERSION in the user's cache folder; a folder in it belongs to one
// content of go.mod and go.sum, so a changed pin rebuilds and an unchanged one never does.
func EnsureBinaries(say func(format string, args ...any)) (Binaries, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	cache := os.Getenv("DHC_CLUSTER_BIN")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("no cache folder for the control plane's programs (set DHC_CLUSTER_BIN): %w", err)
		}
		cache = filepath.Join(user, "device-health-controller", "k8s-"+KubernetesVersion)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("the cache folder of the control plane's programs: %w", err)
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
	}
	return found, nil
}

func (m module) ensure(root, cache string, say func(string, ...any)) (string, error) {
	source := filepath.Join(root, m.folder)
	key, err := m.key(source)
	if err != nil {
		return "", err
	}
	done := filepath.Join(cache, m.folder+"-"+key)
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
	for _, program := range slices.Sorted(maps.Keys(m.programs)) {
		pkg := m.programs[program]
		build := exec.Command("go", "build", "-trimpath", "-ldflags", m.ldflags, "-o", filepath.Join(unfinished, program), pkg)
		build.Dir = source
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off")
		var output bytes.Buffer
		build.Stdout, build.Stderr = &output, &output
		if err := build.Run(); err != nil {
			return "", fmt.Errorf("building %s from %s: %w\n%s", program, source, err, lastLines(output.String(), 30))
		}
		say("built %s, %s so far", program, time.Since(began).Round(time.Second))
	}
	if err := os.RemoveAll(done); err != nil {
		return "", err
	}
	return done, os.Rename(unfinished, done)
}

func (m module) complete(folder string) bool {
	for program := range m.programs {
		if info, err := os.Stat(filepath.Join(folder, program)); err != nil || info.Mode()&0o111 == 0 {
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
		if name == "go.mod" && m.folder == "control-plane" && !bytes.Contains(text, []byte("k8s.io/kubernetes v"+KubernetesVersion)) {
			return "", fmt.Errorf("%s/go.mod does not require k8s.io/kubernetes v%s, which KubernetesVersion promises", source, KubernetesVersion)
		}
		sum.Write(text)
	}
	fmt.Fprintln(sum, m.ldflags, len(m.programs), runtime.GOOS, runtime.GOARCH)
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
