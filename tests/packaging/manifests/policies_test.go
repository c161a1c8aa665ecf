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

// validateStream gives our own program what is rendered, as a pipe would.
func validateStream(t *testing.T, text string) string {
	t.Helper()
	binary := os.Getenv("DHC_BINARY")
	if binary == "" {
		t.Fatal("DHC_BINARY names no program")
	}
	command := exec.Command(binary, "validate", "-")
	command.Stdin = strings.NewReader(text)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return string(out)
}

func TestWhatKustomizeAndHelmPrintIsValidatedWhole(t *testing.T) {
	components := []string{"components/alerts", "components/dashboard", "presets/nvidia-dra"}
	var rendered []string
	for _, object := range Kustomize(t, "overlays/enforce", components...) {
		rendered = append(rendered, object.Text())
	}
	chart, err := Helm(Chart(t), Namespace, Values(t, "{mode: enforce, image: {repository: x}, presets: [nvidia-dra], alerts: {enabled: true}, dashboard: {enabled: true}}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"kustomize": strings.Join(rendered, "---\n"), "helm": chart} {
		out := validateStream(t, text)
		// The dashboard is a ConfigMap too, and holds no policies.
		for _, want := range []string{"nvidia-dra", "objects without policies (", "Deployment", "ConfigMap,"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, out)
			}
		}
	}
}

func TestPoliciesInHelmValuesAreValidated(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(Root(t), "manifests/values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	policies := data(t, Kustomize(t, "overlays/observe"))["policies.yaml"].(string)
	indented := "    " + strings.ReplaceAll(policies, "\n", "\n    ")
	values := strings.Replace(string(text), "\npolicies: {}\n", "\npolicies:\n  mine.yaml: |\n"+indented+"\n", 1)
	if values == string(text) {
		t.Fatal("values.yaml has no empty policies")
	}
	if out := validateStream(t, values); !strings.Contains(out, "1 policy, ") {
		t.Errorf("%s", out)
	}
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
