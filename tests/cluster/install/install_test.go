// Package install applies the overlays of manifests/ to a real cluster, as a user would.
package install

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"device-health.io/controller/tests/cluster/dhc"
	"device-health.io/controller/tests/cluster/fakenode"
	"device-health.io/controller/tests/cluster/realcluster"
)

var cluster *realcluster.ControlPlane

// patience is what a loaded machine may need.
const patience = time.Minute

func TestMain(m *testing.M) {
	realcluster.Main(m, func(planes []*realcluster.ControlPlane) error {
		cluster = planes[0]
		return nil
	}, realcluster.Options{Name: "install"})
}

// apply an overlay of the user's own, over one of ours and with components.
func apply(t *testing.T, overlay string, components ...string) {
	t.Helper()
	cluster.ExplainFailure(t)
	folder := t.TempDir()
	relative := func(path string) string {
		t.Helper()
		manifests, err := realcluster.RepositoryFile("manifests")
		if err == nil {
			path, err = filepath.Rel(folder, filepath.Join(manifests, path))
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	text := "resources: [" + relative(overlay) + "]\ncomponents:\n"
	for _, component := range components {
		text += "  - " + relative(component) + "\n"
	}
	if len(components) == 0 {
		text = strings.TrimSuffix(text, "components:\n")
	}
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Kubectl("", "apply", "--server-side", "--force-conflicts", "-k", folder); err != nil {
		t.Fatal(err)
	}
}

// right is one that our account may have.
type right struct{ verb, group, resource, subresource string }

func (r right) String() string {
	return strings.TrimSuffix(r.verb+" "+r.resource+"/"+r.subresource, "/")
}

// awaitRights waits until our account has all of some rights and none of others: the API server reads roles from a cache.
func awaitRights(t *testing.T, why string, has, lacks []right) {
	t.Helper()
	realcluster.Eventually(t, patience, why, func() error {
		for _, r := range has {
			if !allowed(t, r) {
				return fmt.Errorf("it may not %s", r)
			}
		}
		for _, r := range lacks {
			if allowed(t, r) {
				return fmt.Errorf("it may %s", r)
			}
		}
		return nil
	})
}

func allowed(t *testing.T, r right) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: dhc.User(dhc.Account),
		Groups:             []string{"system:serviceaccounts", "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.subresource, Namespace: "default"}}}
	answer, err := cluster.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status.Allowed
}

// withdraw is how one goes back from enforce to observe: applying the smaller overlay deletes nothing.
func withdraw(t *testing.T) {
	t.Helper()
	for _, kinds := range []string{"clusterroles,clusterrolebindings", "roles,rolebindings"} {
		if _, err := cluster.Kubectl("", "delete", kinds, "--all-namespaces", "-l", "device-health.io/mode=enforce"); err != nil {
			t.Fatal(err)
		}
	}
}

// Pod Security admits the Pods, the scheduler puts them on different nodes, and the budget lets one go at a time.
func TestTheObserveOverlayRunsTwoReplicasOnDifferentNodesUnderPodSecurityRestricted(t *testing.T) {
	known(t, fakenode.Start(t, cluster, fakenode.Spec{}))
	known(t, fakenode.Start(t, cluster, fakenode.Spec{}))
	withdraw(t) // what another test has left
	apply(t, "overlays/observe")
	namespace, err := cluster.Client.CoreV1().Namespaces().Get(t.Context(), dhc.Namespace, metav1.GetOptions{})
	if err != nil || namespace.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Fatalf("%v %v", namespace.Labels, err)
	}
	realcluster.Eventually(t, patience, "two replicas run on two nodes", func() error {
		pods, err := cluster.Client.CoreV1().Pods(dhc.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=device-health-controller"})
		if err != nil {
			return err
		}
		var nodes []string
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning && !slices.Contains(nodes, pod.Spec.NodeName) {
				nodes = append(nodes, pod.Spec.NodeName)
			}
			if pod.Spec.Priority == nil || *pod.Spec.Priority < 1_000_000_000 {
				return fmt.Errorf("priority %v", pod.Spec.Priority)
			}
		}
		if len(nodes) != 2 {
			return fmt.Errorf("%d pods on %v; %s", len(pods.Items), nodes, events(t))
		}
		return nil
	})
	realcluster.Eventually(t, patience, "the budget lets one go", func() error {
		budget, err := cluster.Client.PolicyV1().PodDisruptionBudgets(dhc.Namespace).Get(t.Context(), dhc.Account, metav1.GetOptions{})
		if err == nil && budget.Status.DisruptionsAllowed != 1 {
			err = fmt.Errorf("%+v", budget.Status)
		}
		return err
	})
	look := []right{{"watch", "", "pods", ""}, {"create", "events.k8s.io", "events", ""}}
	act := []right{{"create", "", "pods", "eviction"}, {"patch", "", "pods", "status"}, {"patch", "", "nodes", ""}, {"create", "resource.k8s.io", "devicetaintrules", ""}}
	awaitRights(t, "in observe mode it may look and say what it sees, and write on nothing", look, act)
	apply(t, "overlays/enforce")
	awaitRights(t, "the overlay enforce over observe lets it act", append(act, look...), nil)
	apply(t, "overlays/observe")
	withdraw(t)
	awaitRights(t, "back in observe mode it may write on nothing", look, act)
}

// known waits until the scheduler knows a node, by a Pod that fits nowhere else: replicas keep apart only on nodes that it knows.
func known(t *testing.T, node *fakenode.Node) {
	t.Helper()
	namespace := cluster.Namespace(t)
	_, err := cluster.Client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "scout"},
		Spec: corev1.PodSpec{NodeSelector: map[string]string{"kubernetes.io/hostname": node.Name},
			Containers: []corev1.Container{{Name: "main", Image: "registry.test/pause:1"}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	realcluster.Eventually(t, patience, "a Pod is scheduled onto "+node.Name, func() error {
		pod, err := cluster.Client.CoreV1().Pods(namespace).Get(t.Context(), "scout", metav1.GetOptions{})
		if err == nil && pod.Spec.NodeName == "" {
			err = fmt.Errorf("not yet")
		}
		return err
	})
}

func events(t *testing.T) (text string) {
	t.Helper()
	list, err := cluster.Client.CoreV1().Events(dhc.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, event := range list.Items {
		if event.Type == corev1.EventTypeWarning {
			text += event.InvolvedObject.Name + ": " + event.Message + "; "
		}
	}
	return text
}

// What a mistake in the Deployment would look like: the same Namespace refuses a Pod that is not restricted.
func TestTheNamespaceRefusesAPodThatIsNotRestricted(t *testing.T) {
	apply(t, "overlays/observe")
	_, err := cluster.Client.CoreV1().Pods(dhc.Namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "loose"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.test/pause:1"}}}}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
		t.Errorf("%v", err)
	}
}
