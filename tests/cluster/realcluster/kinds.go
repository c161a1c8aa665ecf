package realcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const kindsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// startKinds makes the kinds of some files, in the version that is stored, and waits until they are served.
func (cp *ControlPlane) startKinds(patterns ...string) error {
	var names []string
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("there is no %s", pattern)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			var kind map[string]any
			if err := yaml.Unmarshal(text, &kind); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			versions := kind["spec"].(map[string]any)["versions"].([]any)
			for _, version := range versions {
				if version.(map[string]any)["storage"] == true {
					kind["spec"].(map[string]any)["versions"] = []any{version}
				}
			}
			name, err := cp.makeKind(kind)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			names = append(names, name)
		}
	}
	return cp.awaitKinds(names)
}

// makeKind makes one, without the schemas of its Pod templates: they are nearly all of it, an API server works twenty seconds at those of
// the owners' kinds, and each Pod is validated by itself.
func (cp *ControlPlane) makeKind(kind map[string]any) (name string, err error) {
	dropPodTemplates(kind)
	text, err := json.Marshal(kind)
	if err != nil {
		return "", err
	}
	name = kind["metadata"].(map[string]any)["name"].(string)
	return name, cp.Client.Discovery().RESTClient().Post().AbsPath(kindsPath).SetHeader("Content-Type", "application/json").Body(text).Do(context.Background()).Error()
}

// dropPodTemplates lets any object be one where the schema describes Pods.
func dropPodTemplates(schema any) {
	switch at := schema.(type) {
	case map[string]any:
		if properties, _ := at["properties"].(map[string]any); properties["containers"] != nil {
			for key := range at {
				delete(at, key)
			}
			at["type"], at["x-kubernetes-preserve-unknown-fields"] = "object", true
			return
		}
		for _, below := range at {
			dropPodTemplates(below)
		}
	case []any:
		for _, below := range at {
			dropPodTemplates(below)
		}
	}
}

func (cp *ControlPlane) awaitKinds(names []string) error {
	for _, name := range names {
		err := cp.await("kube-apiserver", 60*time.Second, name, func(ctx context.Context) error {
			text, err := cp.Client.Discovery().RESTClient().Get().AbsPath(kindsPath, name).DoRaw(ctx)
			if err != nil {
				return err
			}
			var kind struct {
				Status struct{ Conditions []metav1.Condition }
			}
			if err := json.Unmarshal(text, &kind); err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(kind.Status.Conditions, "Established") {
				return fmt.Errorf("it is not served: %+v", kind.Status.Conditions)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
