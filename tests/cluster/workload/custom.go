package workload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"device-health.io/controller/tests/cluster/realcluster"
)

// CustomKind is a kind of which the cluster has only the definition: no controller makes its Pods.
type CustomKind struct{ Group, Kind string }

func (k CustomKind) plural() string { return strings.ToLower(k.Kind) + "s" }

// Create defines the kind and waits until it is served.
func (k CustomKind) Create(t *testing.T, cp *realcluster.ControlPlane) {
	t.Helper()
	kubectl(t, cp, fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[1]s}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, k.plural(), k.Group, k.Kind), "apply", "-f", "-")
	realcluster.Eventually(t, 30*time.Second, k.Kind+" is served", func() error {
		_, err := cp.Kubectl("", "get", k.plural()+"."+k.Group, "--all-namespaces")
		return err
	})
}

// Own makes an object of the kind, and a running Pod with one device of the resource that it controls. Annotations are key=value.
func (k CustomKind) Own(t *testing.T, cp *realcluster.ControlPlane, namespace, name, resource string, annotations ...string) corev1.Pod {
	t.Helper()
	kubectl(t, cp, fmt.Sprintf("{apiVersion: %s/v1, kind: %s, metadata: {name: %s, namespace: %s}}", k.Group, k.Kind, name, namespace), "apply", "-f", "-")
	if len(annotations) > 0 {
		kubectl(t, cp, "", append([]string{"annotate", "-n", namespace, k.plural() + "." + k.Group, name}, annotations...)...)
	}
	uid := kubectl(t, cp, "", "get", "-n", namespace, k.plural()+"."+k.Group, name, "-o", "jsonpath={.metadata.uid}")
	controls := true
	meta := metav1.ObjectMeta{Name: name + "-0", Labels: Labels(name), OwnerReferences: []metav1.OwnerReference{
		{APIVersion: k.Group + "/v1", Kind: k.Kind, Name: name, UID: types.UID(uid), Controller: &controls}}}
	pod := OneContainer(resource, "", "")
	if _, err := cp.Client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: meta, Spec: pod}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return AwaitRunning(t, cp, namespace, name, 1)[0]
}

func kubectl(t *testing.T, cp *realcluster.ControlPlane, input string, arguments ...string) string {
	t.Helper()
	out, err := cp.Kubectl(input, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
