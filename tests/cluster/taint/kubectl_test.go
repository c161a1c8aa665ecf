package taint

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/realcluster"
)

// person makes an account with one of the roles for people, and returns its kubeconfig: in the controller's namespace, or in the cluster.
func person(t *testing.T, role string, everywhere bool) string {
	t.Helper()
	name := realcluster.Unique("person")
	_, err := cluster.Client.CoreV1().ServiceAccounts(dhc.Namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
	who := []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: dhc.Namespace}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	if everywhere {
		_, err = cluster.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: who, RoleRef: ref}, metav1.CreateOptions{})
	} else {
		_, err = cluster.Client.RbacV1().RoleBindings(dhc.Namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: who, RoleRef: ref}, metav1.CreateOptions{})
	}
	must(t, err)
	return dhc.Kubeconfig(t, cluster, name, "")
}

// A reader sees the bad device by the status alone, without a way to the controller's Pod and without any other right; an operator acknowledges it, and its taint goes.
func TestAReaderSeesTheBadDeviceAndAnOperatorsAckEndsItsTaint(t *testing.T) {
	roles, err := realcluster.RepositoryFile("manifests/controller/kubectl-roles.yaml")
	must(t, err)
	if out, err := cluster.Kubectl("", "apply", "-f", roles); err != nil {
		t.Fatal(out, err)
	}
	r := newRack(t, cluster, 2)
	sick, device := r.holder(t)
	controller := r.start(t, dhc.Policy{NoEvict: true, Recover: "{hold: 24h}"})
	r.breaks(device)
	rule := r.awaitRule(t, device, "NoSchedule")
	reader := person(t, "device-health-reader", false)
	var seen struct {
		Devices []struct {
			Device, Node, Health, Said, Holder, Taint string
			Next                                      struct{ Reason, Gate string }
		}
	}
	realcluster.Eventually(t, 30*time.Second, "the reader sees the tainted device", func() error {
		code, out, problem := dhc.Command(t, "devices", "--kubeconfig", reader, "-o", "json")
		if code != 0 {
			return fmt.Errorf("code %d: %s", code, problem)
		}
		if err := json.Unmarshal([]byte(out), &seen); err != nil {
			t.Fatal(err)
		}
		if len(seen.Devices) != 1 || seen.Devices[0].Taint != "rule "+rule.Name {
			return fmt.Errorf("it shows %s", out)
		}
		return nil
	})
	if d := seen.Devices[0]; d.Device != r.driver+"/"+r.node.Name+"/"+device || d.Node != r.node.Name || d.Health != "Unhealthy" || d.Said != "Xid 79" || d.Holder != sick.Namespace+"/"+sick.Name {
		t.Errorf("it shows %+v", d)
	}
	if code, out, problem := dhc.Command(t, "explain", "pod/"+sick.Name, "-n", sick.Namespace, "--kubeconfig", reader); code != 0 || !strings.Contains(out, "held by gate 6 of ") {
		t.Errorf("explain ends with %d: %s%s", code, out, problem)
	}
	if code, _, problem := dhc.Command(t, "ack", "device", device, "--kubeconfig", reader); code != 1 || !strings.Contains(problem, "cannot get resource \"devicetaintrules\"") {
		t.Errorf("a reader's ack ends with %d: %s", code, problem)
	}
	operator := person(t, "device-health-operator", true)
	if code, out, problem := dhc.Command(t, "ack", "device", device, "--reason", "fan replaced", "--kubeconfig", operator); code != 0 || !strings.Contains(out, acknowledge+"=fan replaced") {
		t.Fatalf("ack ends with %d: %s%s", code, out, problem)
	}
	controller.AwaitVerdict(t, r.node.Name, "Acknowledged")
	r.staysWithoutRule(t)
	maps := cluster.Client.CoreV1().ConfigMaps(dhc.Namespace)
	_, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: dhc.ConfigMap}}, metav1.CreateOptions{})
	must(t, err)
	defer func() { must(t, maps.Delete(t.Context(), dhc.ConfigMap, metav1.DeleteOptions{})) }()
	if code, out, problem := dhc.Command(t, "pause", "--for", "1h", "--kubeconfig", operator, "--dry-run"); code != 0 || !strings.Contains(out, "pause-until=") {
		t.Errorf("pause ends with %d: %s%s", code, out, problem)
	}
	realcluster.Eventually(t, 90*time.Second, "the reader sees that it is acknowledged", func() error {
		code, out, problem := dhc.Command(t, "incidents", "--kubeconfig", reader)
		if code != 0 || !strings.Contains(out, "Acknowledged") {
			return fmt.Errorf("code %d: %s%s", code, out, problem)
		}
		return nil
	})
}
