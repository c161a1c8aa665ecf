package node

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
	"device-health.io/controller/tests/cluster/story"
	"device-health.io/controller/tests/cluster/workload"
)

// tenant is a service account that may edit what is in the namespace, as its owner.
func tenant(t *testing.T, namespace string) (kubeconfig string) {
	t.Helper()
	account := realcluster.Unique("tenant")
	if _, err := cluster.Client.CoreV1().ServiceAccounts(dhc.Namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: account}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: dhc.Namespace}}}
	if _, err := cluster.Client.RbacV1().RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return dhc.Kubeconfig(t, cluster, account, "")
}

// Ninety devices are well under another program. Whatever breaks the devices of this one, it is not the devices.
func TestAProgramThatBreaksEachDeviceItIsGivenIsSuspectedAtTheThirdAndKeepsItUntilItsOwnerHasLooked(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	plugin := node.NewPlugin(t, 100)
	well := workload.OneContainer(plugin.Resource, "", "")
	well.Containers[0].Resources.Limits[corev1.ResourceName(plugin.Resource)] = resource.MustParse("30")
	others := workload.StatefulSetOf(t, cluster, namespace, "well", 3, well)
	pod := workload.Deployment{Namespace: namespace, Name: "breaks", Replicas: 1, Resource: plugin.Resource}.Create(t, cluster)[0]
	controller := watchOver(t, namespace, policy{Rest: "after: 0s\nevict: {after: 0s, whenNoReplacement: {wait: 0s}}"})
	for range 2 {
		plugin.Set(t, deviceOf(t, pod), "Unhealthy")
		next := story.AwaitReplacement(t, cluster, pod, 1)[0]
		story.ExpectEvictedOnce(t, controller, pod)
		story.AwaitGone(t, cluster, pod) // until then the program holds two devices, and a larger share
		pod = next
	}
	device := deviceOf(t, pod)
	plugin.Set(t, device, "Unhealthy")
	said := awaitVerdict(t, controller, 20*time.Second, "breaks", "WorkloadSuspected", plugin.Resource)
	if !strings.Contains(said.Message, "3 devices of "+plugin.Resource+" broke under it on 1 node, where others held 90 that were well") {
		t.Errorf("it says %s", said.Message)
	}
	controller.AwaitVerdict(t, pod.Name, "WorkloadSuspected")
	controller.Stays(t, pod, 3*time.Second)
	story.ExpectUntouched(t, controller, pod)
	code, out, problem := dhc.Command(t, "ack", "deployment", "breaks", "-n", namespace, "--kubeconfig", tenant(t, namespace))
	if code != 0 || !strings.Contains(out, "device-health.io/acknowledge=") {
		t.Fatalf("ack ended with %d: %s%s", code, out, problem)
	}
	story.AwaitReplacement(t, cluster, pod, 1)
	story.ExpectEvictedOnce(t, controller, pod)
	for _, other := range others {
		story.ExpectUntouched(t, controller, other)
	}
}
