package standin

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// sameInBoth lists all pods and reads one, in protobuf and in JSON, and compares.
func sameInBoth(t *testing.T, pb, json *kubernetes.Clientset, when string) *corev1.PodList {
	t.Helper()
	a, err := pb.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	must(err)
	b, err := json.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	must(err)
	for i := range b.Items {
		if !apiequality.Semantic.DeepEqual(a.Items[i], b.Items[i]) {
			t.Fatalf("%s: %s", when, diff.Diff(a.Items[i], b.Items[i]))
		}
	}
	p := a.Items[0]
	one, err := pb.CoreV1().Pods(p.Namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
	if err != nil || !apiequality.Semantic.DeepEqual(one.Status, p.Status) {
		t.Fatal(when, err)
	}
	return a
}

func next(t *testing.T, w watch.Interface, want watch.EventType) *corev1.Pod {
	t.Helper()
	e := <-w.ResultChan()
	pod, ok := e.Object.(*corev1.Pod)
	if e.Type != want || !ok {
		t.Fatal(e)
	}
	return pod
}

func TestProtobufSaysWhatJSONSays(t *testing.T) {
	s, c := started(t, protobufType)
	j := s.client(t, "application/json")
	s.EncodeAll()
	l := sameInBoth(t, c, j, "at the start")
	if len(l.Items) != fewPods || s.counts["PROTOBUF LIST pods"] != 1 {
		t.Fatal(len(l.Items), s.counts)
	}
	w, err := c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: l.ResourceVersion})
	must(err)
	for i := range 20 {
		s.heartbeat(i)
		p := next(t, w, "MODIFIED")
		if s.pods().objs[p.Namespace+"/"+p.Name].encoded() == nil || time.Since(p.Status.Conditions[4].LastTransitionTime.Time) > time.Minute {
			t.Fatal(p)
		}
	}
	sameInBoth(t, c, j, "after updates")
	s.Fail(30, 0)
	for range 30 {
		next(t, w, "MODIFIED")
	}
	l = sameInBoth(t, c, j, "after failures")
	p := l.Items[0]
	must(evict(t, c, p, p.UID))
	if e := s.Evictions()[0]; e.Note != "" || e.UID != string(p.UID) {
		t.Fatal(e)
	}
	if next(t, w, "MODIFIED").DeletionTimestamp == nil {
		t.Fatal("the evicted pod is not leaving")
	}
	next(t, w, "DELETED")
}

func TestAWatchListEndsWithItsBookmarkAndAForgottenVersionWith410(t *testing.T) {
	for _, encoding := range []string{protobufType, "application/json"} {
		t.Run(encoding, func(t *testing.T) {
			s, c := started(t, encoding)
			_, version := first(t, c)
			yes := true
			w, err := c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true})
			must(err)
			for range fewPods {
				next(t, w, "ADDED")
			}
			if p := next(t, w, "BOOKMARK"); p.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
				t.Fatal(p)
			}
			s.Compact()
			w, err = c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
			must(err)
			if e := <-w.ResultChan(); e.Type != "ERROR" || !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
				t.Fatal(e)
			}
		})
	}
}
