package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// validate runs our own program over the files of a ConfigMap, all together as the controller would read them.
func validate(t *testing.T, files map[string]any) {
	t.Helper()
	binary := os.Getenv("DHC_BINARY")
	if binary == "" {
		t.Fatal("DHC_BINARY names no program")
	}
	folder := t.TempDir()
	arguments := []string{"validate"}
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text.(string)), 0o600); err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, path)
	}
	if out, err := exec.Command(binary, arguments...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func data(t *testing.T, objects Objects) map[string]any {
	t.Helper()
	return objects["ConfigMap/"+Namespace+"/device-health-controller"]["data"].(map[string]any)
}

func TestEachPresetIsValidBesideTheConfigurationThatComesWithIt(t *testing.T) {
	for _, preset := range presets(t) {
		t.Run(preset, func(t *testing.T) {
			files := data(t, Kustomize(t, "overlays/enforce", "presets/"+preset))
			if len(files) != 2 {
				t.Errorf("files: %v", files)
			}
			if text := files[preset+".yaml"].(string); !strings.Contains(text, "# Source: ") {
				t.Error("it does not say where its names come from")
			}
			validate(t, files)
		})
	}
}

func TestAllPresetsTogetherAreValid(t *testing.T) {
	var all []string
	for _, preset := range presets(t) {
		all = append(all, "presets/"+preset)
	}
	validate(t, data(t, Kustomize(t, "overlays/observe", all...)))
}

func TestTheOverlayForKindIsValidAndEnforces(t *testing.T) {
	objects := Kustomize(t, "overlays/kind")
	validate(t, data(t, objects))
	if text := objects["Deployment/"+Namespace+"/device-health-controller"].Text(); !strings.Contains(text, "--mode=enforce") {
		t.Error("it does not enforce")
	}
}

func TestTheCommentedExamplesAreValidOnceUncommented(t *testing.T) {
	text := data(t, Kustomize(t, "overlays/observe"))["policies.yaml"].(string)
	_, examples, found := strings.Cut(text, "\n# ---\n")
	if !found {
		t.Fatal("there are no examples")
	}
	uncommented := regexp.MustCompile(`(?m)^# ?`).ReplaceAllString("# ---\n"+examples, "")
	if strings.Count(uncommented, "\nkind: ") < 3 {
		t.Fatalf("fewer examples than there should be:\n%s", uncommented)
	}
	validate(t, map[string]any{"policies.yaml": strings.Replace(text, "\n# ---\n"+examples, "\n"+uncommented, 1)})
}
