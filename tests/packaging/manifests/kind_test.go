package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What stands in for the engine: it logs how it is called, and the node's files are in $NODE.
const engineStub = `#!/bin/sh
echo "$(basename "$0") $*" >> "$LOG"
[ "$1" = exec ] || exit 0
shift
case $1 in
  -i) shift 3; cat > "$NODE$1"; exit ;;
  -d) exit ;;
esac
shift
case $1 in
  uname) echo x86_64 ;;
  mkdir) shift 2; for one; do mkdir -p "$NODE$one"; done ;;
  sed) sed -i "$3" "$NODE$4" ;;
esac
`

// Two pods, each with a device; the second's as the kubelet names that of a DRA driver.
const kubectlStub = `#!/bin/sh
echo "kubectl $*" >> "$LOG"
case $* in
  *"get pods --selector app=inference "*) echo inference-a gpu-2 ;;
  *"get pods --selector app=training "*) echo training-a gpu.example.com/device=3f0c-gpu-1 ;;
esac
`

const logStub = `#!/bin/sh
echo "$(basename "$0") $*" >> "$LOG"
`

// runKind runs scripts/kind.sh with stand-ins for all that it calls: what was called, and the node's files.
func runKind(t *testing.T, environment ...string) (calls, node string) {
	t.Helper()
	programs, node, log := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "calls")
	for name, text := range map[string]string{"docker": engineStub, "podman": engineStub, "kubectl": kubectlStub, "kind": logStub, "go": logStub} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command("../../../scripts/kind.sh")
	command.Env = append(os.Environ(), append(environment, "PATH="+programs+":"+os.Getenv("PATH"), "LOG="+log, "NODE="+node)...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), node
}

func TestTheScriptForKindBreaksTheVeryDevicesThatThePodsHold(t *testing.T) {
	calls, node := runKind(t, "KIND_EXPERIMENTAL_PROVIDER=")
	for file, broken := range map[string]string{"plugin.json": `"gpu-2":"Unhealthy"`, "driver.json": `"gpu-1":{"Health":"Unhealthy"}`} {
		text, err := os.ReadFile(filepath.Join(node, "var/lib/devices", file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), broken) || strings.Count(string(text), "Unhealthy") != 1 {
			t.Errorf("%s: not %s alone:\n%s", file, broken, text)
		}
	}
	for _, call := range []string{
		`kind create cluster --name device-health --image kindest/node:v1\.37\.\d+@sha256:[0-9a-f]{64}\n`,
		`docker save --output (\S+) localhost/device-health-controller:kind\nkind load image-archive \S+ --name device-health\n`,
		`docker exec -d device-health-control-plane /usr/local/bin/dra-driver -driver gpu\.example\.com .*-file /var/lib/devices/driver\.json\n`,
		`wait pod/inference-a --for=condition=device-health\.io/DeviceUnhealthy`,
		`wait pod/training-a --for=delete`,
	} {
		if !regexp.MustCompile(call).MatchString(calls) {
			t.Errorf("nothing was called as %s:\n%s", call, calls)
		}
	}
}

func TestTheScriptForKindUsesPodmanWhereItIsAskedTo(t *testing.T) {
	calls, _ := runKind(t, "KIND_EXPERIMENTAL_PROVIDER=podman")
	if strings.Contains(calls, "docker ") || !strings.Contains(calls, "podman save --output ") {
		t.Errorf("not podman alone:\n%s", calls)
	}
}

func TestWhatTheOverlayForKindRunsIsWhatItsPolicyMatches(t *testing.T) {
	objects := Kustomize(t, "overlays/kind")
	text := objects["DeviceClass//gpu.example.com"].Text()
	if !strings.Contains(text, "gpu.example.com") {
		t.Errorf("there is no class of the driver: %s", text)
	}
	policy := data(t, objects)["example-driver.yaml"].(string)
	for _, named := range []string{`"gpu.example.com"`, `"example.com/*"`} {
		if !strings.Contains(policy, named) {
			t.Errorf("the policy does not name %s", named)
		}
	}
}
