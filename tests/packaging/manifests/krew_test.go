package manifests

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// archive writes a release's archive with these files.
func archive(t *testing.T, path string, names ...string) {
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
	for _, name := range names {
		if err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(name))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(name)); err != nil {
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
