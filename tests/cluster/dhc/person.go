package dhc

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/realcluster"
)

// The roles of manifests/controller for people.
const (
	ReaderRole   = "device-health-reader"
	OperatorRole = "device-health-operator"
)

// InstallRolesForPeople applies them with kubectl.
func InstallRolesForPeople(t *testing.T, cp *realcluster.ControlPlane) {
	t.Helper()
	roles, err := realcluster.RepositoryFile("manifests/controller/kubectl-roles.yaml")
	fatal(t, err)
	if out, err := cp.Kubectl("", "apply", "-f", roles); err != nil {
		t.Fatal(out, err)
	}
}

// Person makes an account with one ClusterRole, in a namespace or, where that is empty, in the whole cluster; it returns how the API server names the account, and
// its kubeconfig.
func Person(t *testing.T, cp *realcluster.ControlPlane, role, namespace string) (user, kubeconfig string) {
	t.Helper()
	name := realcluster.Unique("person")
	_, err := cp.Client.CoreV1().ServiceAccounts(Namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	fatal(t, err)
	who := []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: Namespace}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	if namespace == "" {
		_, err = cp.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: who, RoleRef: ref}, metav1.CreateOptions{})
	} else {
		_, err = cp.Client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: who, RoleRef: ref}, metav1.CreateOptions{})
	}
	fatal(t, err)
	return User(name), Kubeconfig(t, cp, name, "")
}
