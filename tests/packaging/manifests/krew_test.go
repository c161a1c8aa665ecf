package manifests

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// archive writes a release's archive with these files, each of which holds its name.
func archive(t *testing.T, path string, names ...string) {
	t.Helper()
	files := map[string]string{}
	for _, name := range names {
		files[name] = name
	}
	archiveOf(t, path, files)
}

func archiveOf(t *testing.T, path string, files map[string]string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed := gzip.NewWriter(file)
	defer packed.Close()
	writer := tar.NewWriter(packed)
	defer writer.Close()
	for name, text := range files {
		if err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
}

func krew(t *testing.T, arguments ...string) (out string, err error) {
	t.Helper()
	text, err := exec.Command(filepath.Join(Root(t), "scripts/krew-manifest.sh"), arguments...).CombinedOutput()
	return string(text), err
}

func TestTheKrewManifestIsFilledWithTheChecksumsOfARelease(t *testing.T) {
	good := filepath.Join(t.TempDir(), "kubectl-device_health-linux-amd64.tar.gz")
	archive(t, good, "kubectl-device_health", "LICENSE")
	out, err := krew(t, "v1.2.3", "owner/name", good)
	if err != nil {
		t.Fatal(out, err)
	}
	var plugin struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Version, ShortDescription string
			Platforms                 []struct {
				URI, Sha256, Bin string
				Selector         struct{ MatchLabels map[string]string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(out), &plugin); err != nil {
		t.Fatal(err)
	}
	bytes, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	if len(plugin.Spec.Platforms) != 1 {
		t.Fatalf("a platform without an archive is there, or none: %s", out)
	}
	if p := plugin.Spec.Platforms[0]; p.Sha256 != fmt.Sprintf("%x", sha256.Sum256(bytes)) || p.Selector.MatchLabels["arch"] != "amd64" || p.Bin != "kubectl-device_health" ||
		p.URI != "https://github.com/owner/name/releases/download/v1.2.3/kubectl-device_health-linux-amd64.tar.gz" {
		t.Errorf("it says %+v", p)
	}
	if plugin.Spec.Version != "v1.2.3" || plugin.Metadata.Name != "device-health" || strings.Contains(out, "@") {
		t.Errorf("not filled: %s", out)
	}
}

func TestAnArchiveThatIsNoPluginIsRefused(t *testing.T) {
	folder := t.TempDir()
	empty := filepath.Join(folder, "kubectl-device_health-linux-amd64.tar.gz")
	archive(t, empty, "LICENSE")
	other := filepath.Join(folder, "kubectl-device_health-plan9-amd64.tar.gz")
	archive(t, other, "kubectl-device_health")
	for says, arguments := range map[string][]string{
		"holds no kubectl-device_health": {"1.2.3", "o/n", empty},
		"has no platform for":            {"1.2.3", "o/n", other},
		"is not like 1.2.3":              {"latest", "o/n", empty},
		"usage:":                         {"1.2.3"},
	} {
		if out, err := krew(t, arguments...); err == nil || !strings.Contains(out, says) {
			t.Errorf("%v: %v %s", arguments, err, out)
		}
	}
}

// krewTools are krew itself and the program by which its index checks what is submitted.
func krewTools(t *testing.T) (install, check string) {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"krew", "validate-krew-manifest"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(folder, name), "sigs.k8s.io/krew/cmd/"+name).CombinedOutput(); err != nil {
			t.Fatal(string(out), err)
		}
	}
	return filepath.Join(folder, "krew"), filepath.Join(folder, "validate-krew-manifest")
}

func TestKrewInstallsTheReleaseByItsManifestAndThePluginRuns(t *testing.T) {
	binary := os.Getenv("DHC_BINARY")
	if binary == "" {
		t.Fatal("DHC_BINARY names no program")
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	install, check := krewTools(t)
	folder := t.TempDir()
	manifest, packed := filepath.Join(folder, "device-health.yaml"), filepath.Join(folder, "kubectl-device_health-linux-"+runtime.GOARCH+".tar.gz")
	archiveOf(t, packed, map[string]string{"kubectl-device_health": string(program), "LICENSE": "Apache"})
	filled, err := krew(t, "1.2.3", "owner/name", packed)
	if err != nil {
		t.Fatal(filled, err)
	}
	home := filepath.Join(folder, "krew")
	// run gives krew this manifest, and says how both of its programs end.
	run := func(text string) (checked, installed error) {
		if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(check, "-skip-install", "-manifest", manifest).CombinedOutput(); err != nil {
			checked = fmt.Errorf("%w: %s", err, out)
		}
		command := exec.Command(install, "install", "--manifest", manifest, "--archive", packed)
		command.Env = append(os.Environ(), "KREW_ROOT="+home, "KREW_NO_UPGRADE_CHECK=1")
		if out, err := command.CombinedOutput(); err != nil {
			installed = fmt.Errorf("%w: %s", err, out)
		}
		return checked, installed
	}
	// What krew must refuse, so that a word of it means something.
	for planted, mistake := range map[string]struct{ from, to, says string }{
		"another checksum":      {"sha256: \"", "sha256: \"0", "sha256"},
		"a version without v":   {"version: v1.2.3", "version: 1.2.3", "version"},
		"a program not in it":   {"bin: kubectl-device_health", "bin: other", "other"},
		"no short description":  {"shortDescription:", "longDescription:", "short description"},
		"another plugin's name": {"name: device-health\n", "name: device-wealth\n", "device-wealth"},
	} {
		wrong := strings.Replace(filled, mistake.from, mistake.to, 1)
		if wrong == filled {
			t.Fatalf("%s: the manifest has no %q", planted, mistake.from)
		}
		if checked, installed := run(wrong); checked == nil && installed == nil || !strings.Contains(fmt.Sprint(checked, installed), mistake.says) {
			t.Errorf("krew takes %s: %v %v", planted, checked, installed)
		}
		if err := os.RemoveAll(home); err != nil {
			t.Fatal(err)
		}
	}
	if checked, installed := run(filled); checked != nil || installed != nil {
		t.Fatalf("krew takes it not: %v %v\n%s", checked, installed, filled)
	}
	wanted, err := exec.Command(binary, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(filepath.Join(home, "bin", "kubectl-device_health"), "--version").CombinedOutput(); err != nil || string(out) != string(wanted) {
		t.Errorf("the plugin says %s, and not %s: %v", out, wanted, err)
	}
}
