package standin

import (
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

const fewPods = 200

// started is a small stand-in and a client-go client of it that speaks the content type.
func started(t *testing.T, contentType string) (*Server, *kubernetes.Clientset) {
	t.Helper()
	s := New(Options{World: World{Pods: fewPods, Nodes: 6, Seed: 1}, Linger: 10 * time.Millisecond})
	s.order = append([]string(nil), s.pods().keys...) // the first in the list fails first
	s.api = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s, s.client(t, contentType)
}

func (s *Server) client(t *testing.T, contentType string) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(&rest.Config{Host: s.api.URL, BearerToken: Token, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: contentType}})
	must(err)
	return c
}

// first is the first pod of the list, and the list's version.
func first(t *testing.T, c *kubernetes.Clientset) (corev1.Pod, string) {
	t.Helper()
	l, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil || len(l.Items) != 1 {
		t.Fatal(err, l)
	}
	return l.Items[0], l.ResourceVersion
}

func evict(t *testing.T, c *kubernetes.Clientset, p corev1.Pod, uid types.UID) error {
	return c.PolicyV1().Evictions(p.Namespace).Evict(t.Context(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	})
}
