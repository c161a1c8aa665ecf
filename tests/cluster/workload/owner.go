package workload

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realcluster"
)

// ForeignOwner makes an object that makes no Pods, and gives a reference to it as the controller of something else. The controller may read its kind,
// where it looks for an opt-out.
func ForeignOwner(t *testing.T, cp *realcluster.ControlPlane, namespace string) metav1.OwnerReference {
	t.Helper()
	labels := Labels("set")
	made, err := cp.Client.CoreV1().ReplicationControllers(namespace).Create(t.Context(), &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: "set"},
		Spec: corev1.ReplicationControllerSpec{Replicas: new(int32), Selector: labels,
			Template: &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: OneContainer("", "", "")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *metav1.NewControllerRef(made, corev1.SchemeGroupVersion.WithKind("ReplicationController"))
}
