package facts

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"device-health.io/controller/tests/cluster/realcluster"
)

// watched are the kinds that the controller follows.
var watched = map[string]string{
	"pods": "/api/v1/pods", "nodes": "/api/v1/nodes", "namespaces": "/api/v1/namespaces",
	"configmaps":       "/api/v1/namespaces/device-health-system/configmaps",
	"resourceclaims":   "/apis/resource.k8s.io/v1/resourceclaims",
	"resourceslices":   "/apis/resource.k8s.io/v1/resourceslices",
	"devicetaintrules": "/apis/resource.k8s.io/v1/devicetaintrules",
	"jobs":             "/apis/batch/v1/jobs",
	"replicasets":      "/apis/apps/v1/replicasets", "statefulsets": "/apis/apps/v1/statefulsets",
}

const watchList = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

type event struct {
	Type   string
	Object struct {
		Kind     string
		Code     int
		Reason   string
		Message  string
		Metadata struct {
			Name, ResourceVersion string
			Annotations           map[string]string
		}
	}
}

// stream opens a watch without client-go's interpretation and returns the answer's code, its body when it is no stream, and its events.
func stream(t *testing.T, cp *realcluster.ControlPlane, uri, accept string) (code int, body string, events func() (event, error)) {
	t.Helper()
	client, err := rest.HTTPClientFor(cp.Admin)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, cp.Server+uri, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(text), nil
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 8<<20)
	return response.StatusCode, "", func() (e event, err error) {
		if !lines.Scan() {
			return e, fmt.Errorf("the stream ended: %w", cmp.Or(lines.Err(), io.EOF))
		}
		return e, json.Unmarshal(lines.Bytes(), &e)
	}
}

// An API server that is short of CPU closes a stream whose reader it finds too slow, in the middle and without a word
// (its log: "Forcing pods watcher close due to unresponsiveness"): whoever lists so has to begin anew.
func TestAWatchListOfEveryKindEndsItsInitialEventsWithABookmark(t *testing.T) {
	for kind, path := range watched {
		t.Run(kind, func(t *testing.T) {
			for attempt := 1; ; attempt++ {
				code, body, next := stream(t, whole, path+"?"+watchList, "application/json")
				if code != http.StatusOK {
					t.Fatalf("%d %s", code, body)
				}
				err := readToBookmark(t, next)
				if err == nil {
					return
				}
				if !errors.Is(err, io.EOF) || attempt == 5 {
					t.Fatalf("attempt %d: %v", attempt, err)
				}
				t.Logf("attempt %d: %v", attempt, err)
			}
		})
	}
}

// readToBookmark reads what a list begins with, in which nothing but ADDED may stand.
func readToBookmark(t *testing.T, next func() (event, error)) error {
	t.Helper()
	for {
		e, err := next()
		if err != nil {
			return err
		}
		if e.Type == "BOOKMARK" && e.Object.Metadata.Annotations["k8s.io/initial-events-end"] == "true" {
			return nil
		}
		if e.Type != "ADDED" {
			t.Fatalf("%s before the end of the initial events", e.Type)
		}
	}
}

func TestAnOwnersMetadataAloneCanBeWatched(t *testing.T) {
	const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	for _, kind := range []string{"jobs", "replicasets", "statefulsets"} {
		code, body, next := stream(t, whole, watched[kind]+"?"+watchList, metadataOnly)
		if code != http.StatusOK {
			t.Fatalf("%s: %d %s", kind, code, body)
		}
		e, err := next()
		if err != nil || e.Object.Kind != "PartialObjectMetadata" {
			t.Errorf("%s: first event is %+v, %v", kind, e, err)
		}
	}
}

func TestAServerWithoutWatchListRefusesItWith422AndServesListAndWatch(t *testing.T) {
	for kind, path := range watched {
		t.Run(kind, func(t *testing.T) {
			code, body, _ := stream(t, withoutWatchList, path+"?"+watchList, "application/json")
			if code != http.StatusUnprocessableEntity || !strings.Contains(body, "sendInitialEvents") {
				t.Errorf("a WatchList was answered by %d %s", code, body)
			}
			list, err := withoutWatchList.Client.Discovery().RESTClient().Get().RequestURI(path + "?limit=500").DoRaw(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var version struct {
				Metadata struct{ ResourceVersion string }
			}
			if err := json.Unmarshal(list, &version); err != nil {
				t.Fatal(err)
			}
			code, body, _ = stream(t, withoutWatchList, path+"?watch=true&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion="+version.Metadata.ResourceVersion, "application/json")
			if code != http.StatusOK {
				t.Errorf("a watch from the list's version was answered by %d %s", code, body)
			}
		})
	}
}

// The API server's own memory (watch cache and its snapshots) can outlive a compaction of etcd, so it is restarted as well: what
// every client meets after an upgrade of the control plane.
func TestWhatTheServerForgotIs410(t *testing.T) {
	cp := withoutWatchList
	namespace := cp.Namespace(t)
	configMaps := cp.Client.CoreV1().ConfigMaps(namespace)
	for i := range 3 {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("page-", i)}}
		if _, err := configMaps.Create(t.Context(), made, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	page, err := configMaps.List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil || page.Continue == "" {
		t.Fatalf("first page: continue %q, %v", page.Continue, err)
	}
	uri := watched["pods"] + "?watch=true&allowWatchBookmarks=true&timeoutSeconds=5&resourceVersion=" + page.ResourceVersion
	if code, body, _ := stream(t, cp, uri, "application/json"); code != http.StatusOK {
		t.Fatalf("a watch before the restart: %d %s", code, body)
	}
	if err := cp.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("as an ERROR event inside a 200 for a watch", func(t *testing.T) {
		code, body, next := stream(t, cp, uri, "application/json")
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, body)
		}
		e, err := next()
		if err != nil || e.Type != "ERROR" || e.Object.Code != http.StatusGone || e.Object.Reason != "Expired" {
			t.Errorf("%+v, %v", e, err)
		}
	})
	t.Run("as a status for a list's next page", func(t *testing.T) {
		_, err := configMaps.List(t.Context(), metav1.ListOptions{Limit: 1, Continue: page.Continue})
		if !isStatus(err, http.StatusGone) {
			t.Errorf("next page: %v", err)
		}
	})
}
