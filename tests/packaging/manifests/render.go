// Package manifests renders what a user would apply, with kustomize and with Helm as libraries, and compares the two.
package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Namespace that manifests/ is written for.
const Namespace = "device-health-system"

// Object is one rendered document.
type Object map[string]any

// Objects by "Kind/namespace/name".
type Objects map[string]Object

// Root is the repository's.
func Root(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "manifests/base/kustomization.yaml")); err != nil {
		t.Fatal(err)
	}
	return folder
}

// Read splits and decodes documents.
func Read(t *testing.T, text string) Objects {
	t.Helper()
	objects := Objects{}
	for _, document := range strings.Split("\n"+text, "\n---") {
		object := Object{}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(object) == 0 {
			continue
		}
		metadata, _ := object["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		name := fmt.Sprintf("%v/%s/%v", object["kind"], namespace, metadata["name"])
		if _, doubled := objects[name]; doubled {
			t.Errorf("%s is there twice", name)
		}
		objects[name] = object
	}
	return objects
}

// Kustomize renders an overlay of its own, in a folder beside manifests/ as a user has it, over one of ours and with components.
func Kustomize(t *testing.T, base string, components ...string) Objects {
	t.Helper()
	root := Root(t)
	folder := t.TempDir()
	relative := func(path string) string {
		t.Helper()
		path, err := filepath.Rel(folder, filepath.Join(root, "manifests", path))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	overlay := map[string]any{"resources": []string{relative(base)}}
	var paths []string
	for _, component := range components {
		paths = append(paths, relative(component))
	}
	overlay["components"] = paths
	text, err := yaml.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	out, err := rendered.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return Read(t, string(out))
}

// Chart as it is in the repository.
func Chart(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadDir(filepath.Join(Root(t), "manifests"))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// Helm renders a chart as `helm template` does.
func Helm(chart *chart.Chart, namespace string, values map[string]any) (string, error) {
	client := action.NewInstall(&action.Configuration{})
	client.DryRun, client.ClientOnly, client.ReleaseName, client.Namespace = true, true, "dhc", namespace
	client.KubeVersion = &chartutil.KubeVersion{Version: "v1.37.1", Major: "1", Minor: "37"}
	release, err := client.Run(chart, values)
	if err != nil {
		return "", err
	}
	return release.Manifest, nil
}

// Values parses what would stand in a values file.
func Values(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// Names in order.
func (o Objects) Names() (names []string) {
	for name := range o {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Text of one object, with its keys in order.
func (o Object) Text() string {
	text, err := yaml.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
