// Package dhc runs the controller's binary against a real control plane, as the service account of manifests/ and with its roles
// only.
package dhc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"device-health.io/controller/tests/cluster/realcluster"
)

// Namespace, Account, ConfigMap, State and Status are the names that manifests/ gives; State is the ConfigMap of the devices' incidents, EarlierState that of
// 0.1.0, Status that of what readers are told.
const (
	Namespace    = "device-health-system"
	Account      = "device-health-controller"
	ConfigMap    = "device-health-controller"
	State        = "device-health-incidents"
	EarlierState = "device-health-state"
	Status       = "device-health-status"
)

// OwnersRole is the role into which the control plane aggregates the rights to read owners.
const OwnersRole = "device-health-controller-owners"

// InstallOn looks for the program to test, and installs it on each control plane of a package.
func InstallOn(planes []*realcluster.ControlPlane) error {
	if _, err := Binary(); err != nil {
		return err
	}
	for _, cp := range planes {
		if err := Install(cp); err != nil {
			return err
		}
	}
	return nil
}

// Install applies manifests/base with kubectl, as a user would, and waits until the aggregated role has its rules.
func Install(cp *realcluster.ControlPlane) error {
	base, err := realcluster.RepositoryFile("manifests/base")
	if err != nil {
		return err
	}
	if _, err = cp.Kubectl("", "apply", "-k", base); err != nil || cp.Options.WithoutControllers {
		return err
	}
	for range 120 {
		var role *rbacv1.ClusterRole
		if role, err = cp.Client.RbacV1().ClusterRoles().Get(context.Background(), OwnersRole, metav1.GetOptions{}); err == nil && len(role.Rules) > 0 {
			return nil
		}
		time.Sleep(time.Second)
	}
	return fmt.Errorf("ClusterRole %s gets no rules: %v", OwnersRole, err)
}

// Manifests are the roles of manifests/base, as kustomize renders them.
type Manifests struct {
	ClusterRoles []rbacv1.ClusterRole
	Roles        []rbacv1.Role
}

// ReadManifests renders manifests/base.
func ReadManifests(cp *realcluster.ControlPlane) (m Manifests, err error) {
	base, err := realcluster.RepositoryFile("manifests/base")
	if err != nil {
		return m, err
	}
	text, err := cp.Kubectl("", "kustomize", base)
	if err != nil {
		return m, err
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	for {
		var raw struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
			Rules             []rbacv1.PolicyRule `json:"rules"`
		}
		if err := documents.Decode(&raw); errors.Is(err, io.EOF) {
			return m, nil
		} else if err != nil {
			return m, err
		}
		switch raw.Kind {
		case "ClusterRole":
			m.ClusterRoles = append(m.ClusterRoles, rbacv1.ClusterRole{ObjectMeta: raw.ObjectMeta, Rules: raw.Rules})
		case "Role":
			m.Roles = append(m.Roles, rbacv1.Role{ObjectMeta: raw.ObjectMeta, Rules: raw.Rules})
		}
	}
}

// Verb is one right of the manifests; Name is that of the only object, if there is but one.
type Verb struct{ Group, Resource, Verb, Name string }

func (v Verb) String() string {
	return strings.TrimSpace(strings.TrimSuffix(v.Verb+" of "+v.Resource+"."+v.Group, ".") + " " + v.Name)
}

// is says whether a rule gives this right's resource, by this name.
func (v Verb) is(rule rbacv1.PolicyRule) bool {
	named := v.Name == "" && len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, v.Name)
	return named && slices.Contains(rule.APIGroups, v.Group) && slices.Contains(rule.Resources, v.Resource)
}

// Verbs are all rights that the manifests give.
func (m Manifests) Verbs() (all []Verb) {
	var rules []rbacv1.PolicyRule
	for _, role := range m.ClusterRoles {
		rules = append(rules, role.Rules...)
	}
	for _, role := range m.Roles {
		rules = append(rules, role.Rules...)
	}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					names := rule.ResourceNames
					if len(names) == 0 {
						names = []string{""}
					}
					for _, name := range names {
						all = append(all, Verb{group, resource, verb, name})
					}
				}
			}
		}
	}
	return all
}

// AccountWithout makes a service account that has every right of the manifests but these.
func (m Manifests) AccountWithout(t *testing.T, cp *realcluster.ControlPlane, missing ...Verb) (account string) {
	t.Helper()
	account = realcluster.Unique("without-a-verb")
	ctx := t.Context()
	_, err := cp.Client.CoreV1().ServiceAccounts(Namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	fatal(t, err)
	who := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: Namespace}}
	for i, role := range m.ClusterRoles {
		name := fmt.Sprintf("%s-%d", account, i)
		_, err := cp.Client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: without(role.Rules, missing)}, metav1.CreateOptions{})
		fatal(t, err)
		_, err = cp.Client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: who,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}}, metav1.CreateOptions{})
		fatal(t, err)
	}
	for i, role := range m.Roles {
		name := fmt.Sprintf("%s-%d", account, i)
		_, err := cp.Client.RbacV1().Roles(role.Namespace).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: without(role.Rules, missing)}, metav1.CreateOptions{})
		fatal(t, err)
		_, err = cp.Client.RbacV1().RoleBindings(role.Namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: who,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}, metav1.CreateOptions{})
		fatal(t, err)
	}
	return account
}

func without(rules []rbacv1.PolicyRule, missing []Verb) (left []rbacv1.PolicyRule) {
	for _, rule := range rules {
		rule = *rule.DeepCopy()
		for _, m := range missing {
			if m.is(rule) {
				rule.Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool { return verb == m.Verb })
			}
		}
		if len(rule.Verbs) > 0 {
			left = append(left, rule)
		}
	}
	return left
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// User is the name under which the API server knows a service account of ours.
func User(account string) string { return "system:serviceaccount:" + Namespace + ":" + account }

// Kubeconfig writes one for a service account, with a fresh token, and returns its path. An empty server is the cluster's own.
func Kubeconfig(t *testing.T, cp *realcluster.ControlPlane, account, server string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	token, err := cp.Token(ctx, Namespace, account)
	fatal(t, err)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	fatal(t, cp.WriteKubeconfig(path, realcluster.Credentials{Server: server, Token: token}))
	return path
}
