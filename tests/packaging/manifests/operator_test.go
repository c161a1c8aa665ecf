package manifests

import (
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

// The objects of prometheus-operator cannot be applied where its CRDs are missing: its own types say whether a field exists.
func TestMonitorsAndRulesAreWhatPrometheusOperatorReads(t *testing.T) {
	objects := Kustomize(t, "overlays/observe", "components/service-monitor", "components/pod-monitor", "components/alerts")
	name := "/" + Namespace + "/device-health-controller"
	monitor, pods, rules := monitoring.ServiceMonitor{}, monitoring.PodMonitor{}, monitoring.PrometheusRule{}
	for kind, into := range map[string]any{"ServiceMonitor": &monitor, "PodMonitor": &pods, "PrometheusRule": &rules} {
		if objects[kind+name] == nil {
			t.Fatalf("there is no %s", kind)
		}
		if err := yaml.UnmarshalStrict([]byte(objects[kind+name].Text()), into); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if len(monitor.Spec.Endpoints) != 1 || len(pods.Spec.PodMetricsEndpoints) != 1 || len(rules.Spec.Groups) != 1 {
		t.Errorf("%+v %+v %+v", monitor.Spec, pods.Spec, rules.Spec)
	}
	service := objects["Service/"+Namespace+"/device-health-controller-metrics"]
	labels := service["metadata"].(map[string]any)["labels"].(map[string]any)
	for key, value := range monitor.Spec.Selector.MatchLabels {
		if labels[key] != value {
			t.Errorf("the ServiceMonitor does not select the Service: %v", labels)
		}
	}
}
