package realcluster

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// earlierCommit is release 0.1.0, which has no tag.
const earlierCommit = "b0c9e05e4cc60737be1a2f5405e77a2e18033f53"

// earlierSays is what its program answers to `version`.
const earlierSays = "device-health-controller 0.1.0"

//go:embed earlier.cmake
var earlierBatches []byte

// Earlier is release 0.1.0 as it was: its program, and the folder of its manifests.
type Earlier struct{ Program, Manifests string }

// EnsureEarlier builds 0.1.0 from its archive, unless the cache has it, and tells say what it does and how long it took.
func EnsureEarlier(say func(format string, args ...any)) (Earlier, error) {
	cache, err := cacheFolder("")
	if err != nil {
		return Earlier{}, err
	}
	unlock, err := lockFile(filepath.Join(cache, "earlier.lock"), func() { say("another run is building 0.1.0, waiting for it") })
	if err != nil {
		return Earlier{}, err
	}
	defer unlock()
	done := filepath.Join(cache, "0.1.0-"+earlierCommit[:12])
	found := Earlier{filepath.Join(done, "device-health-controller"), filepath.Join(done, "manifests")}
	// It is asked: a program that was linked with libraries that this machine no longer has is as good as none.
	if answer, err := exec.Command(found.Program, "version").Output(); err == nil && strings.TrimSpace(string(answer)) == earlierSays {
		return found, nil
	}
	unfinished := done + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return Earlier{}, err
	}
	if err := buildEarlier(unfinished, say); err != nil {
		return Earlier{}, fmt.Errorf("release 0.1.0, from which this version is an upgrade: %w", err)
	}
	if err := os.RemoveAll(done); err != nil {
		return Earlier{}, err
	}
	return found, os.Rename(unfinished, done)
}

// buildEarlier leaves the program and the manifests in the folder, and of the source nothing.
func buildEarlier(folder string, say func(string, ...any)) error {
	source, build := filepath.Join(folder, "source"), filepath.Join(folder, "build")
	if err := os.MkdirAll(source, 0o755); err != nil {
		return err
	}
	if err := extractEarlier(source); err != nil {
		return err
	}
	batches := filepath.Join(folder, "batches.cmake")
	if err := os.WriteFile(batches, earlierBatches, 0o600); err != nil {
		return err
	}
	say("building 0.1.0 (commit %s) into %s (about two minutes on 2 cores)", earlierCommit[:12], folder)
	began := time.Now()
	configure := []string{"cmake", "-G", "Ninja", "-S", source, "-B", build, "-DCMAKE_CXX_COMPILER=g++", "-DCMAKE_BUILD_TYPE=Debug",
		"-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g0 -w", "-DDHC_TESTS=OFF", "-DDHC_CPPREST=OFF", "-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=16",
		"-DCMAKE_PROJECT_INCLUDE=" + batches}
	if ccache, err := exec.LookPath("ccache"); err == nil {
		// As cmake/options.cmake does for this version.
		configure = append(configure, "-DCMAKE_CXX_COMPILER_LAUNCHER=cmake;-E;env;CCACHE_BASEDIR="+folder+
			";CCACHE_NOHASHDIR=1;CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime;"+ccache)
	}
	var worked time.Duration
	for _, words := range [][]string{configure, {"cmake", "--build", build, "--target", "device-health-controller"}} {
		output, used, err := carryOut(words)
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(words[:3], " "), err, lastLines(output, 30))
		}
		worked += used
	}
	say("built 0.1.0 in %s, with %s of processor time", time.Since(began).Round(time.Second), worked.Round(time.Second))
	for from, to := range map[string]string{filepath.Join(build, "device-health-controller"): "device-health-controller", filepath.Join(source, "manifests"): "manifests"} {
		if err := os.Rename(from, filepath.Join(folder, to)); err != nil {
			return err
		}
	}
	for _, folder := range []string{source, build, batches} {
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	return nil
}

// extractEarlier writes that release's files into the folder.
func extractEarlier(folder string) error {
	archive, err := RepositoryFile("tests/fixtures/releases/0.1.0.tar.gz")
	if err != nil {
		return err
	}
	if output, _, err := carryOut([]string{"tar", "-x", "-z", "-C", folder, "-f", archive}); err != nil {
		return fmt.Errorf("tar: %w: %s", err, strings.TrimSpace(output))
	}
	return nil
}

// carryOut runs a command to its end: what it printed, and the processor time that it and its children used.
func carryOut(words []string) (output string, used time.Duration, err error) {
	command := exec.Command(words[0], words[1:]...)
	var printed bytes.Buffer
	command.Stdout, command.Stderr = &printed, &printed
	err = command.Run()
	if command.ProcessState != nil {
		used = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	}
	return printed.String(), used, err
}
