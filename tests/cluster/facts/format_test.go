package facts

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// crowd makes pods that nobody schedules: only what the server says about them counts.
func crowd(t *testing.T, namespace string, count int) {
	t.Helper()
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "crowd"}, Annotations: map[string]string{"example.com/owner": "a team"}}}
	pod.Spec.SchedulerName = "nobody"
	for i := range 3 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint("c", i), Image: "registry.example.com/app:1",
			Env: []corev1.EnvVar{{Name: "MODE", Value: "serve"}, {Name: "LEVEL", Value: "info"}}, Args: []string{"--listen", ":8080"}})
	}
	for i := range count {
		pod.Name = fmt.Sprint("crowd-", i)
		if _, err := whole.Client.CoreV1().Pods(namespace).Create(t.Context(), &pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// nextEvent reads one event of a watch with its first byte on the wire: in JSON a line, in protobuf a frame, which is its length in four
// bytes and the event.
func nextEvent(from *bufio.Reader, framed bool) (first byte, event []byte, err error) {
	if !framed {
		if event, err = from.ReadBytes('\n'); err != nil {
			return 0, nil, err
		}
		return event[0], event, nil
	}
	var length [4]byte
	if _, err = io.ReadFull(from, length[:]); err != nil {
		return 0, nil, err
	}
	event = make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err = io.ReadFull(from, event)
	return length[0], event, err
}

// watchOnce reads a WatchList up to the bookmark that ends it and returns how many events and bytes it has.
func watchOnce(t *testing.T, client *http.Client, uri, accept string, framed bool) (events, size int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, whole.Server+uri, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for from := bufio.NewReader(response.Body); ; {
		first, event, err := nextEvent(from, framed)
		if err != nil {
			t.Fatalf("%s: %v", response.Status, err)
		}
		// By this byte the controller tells them apart.
		if wanted := map[bool]byte{true: 0, false: '{'}[framed]; first != wanted {
			t.Fatalf("asked for %q, an event begins with %q", accept, first)
		}
		events, size = events+1, size+len(event)
		if bytes.Contains(event, []byte("k8s.io/initial-events-end")) {
			return events, size
		}
	}
}

func TestAWatchListInProtobufHasTheSameEventsAndCostsTheServerLess(t *testing.T) {
	const pods, rounds = 500, 10
	namespace := whole.Namespace(t)
	crowd(t, namespace, pods)
	client, err := rest.HTTPClientFor(whole.Admin)
	if err != nil {
		t.Fatal(err)
	}
	uri := "/api/v1/namespaces/" + namespace + "/pods?" + watchList
	formats := []struct {
		name, accept string
		framed       bool
		cpu          time.Duration
		size         int
	}{{name: "JSON", accept: "application/json"}, {name: "protobuf", accept: protobuf + ",application/json", framed: true}}
	for round := range rounds + 1 {
		for i := range formats {
			f := &formats[i]
			before := whole.CPU(t, "kube-apiserver")
			events, size := watchOnce(t, client, uri, f.accept, f.framed)
			if events != pods+1 {
				t.Fatalf("%d events for %d pods and the end", events, pods)
			}
			if f.size = size; round > 0 { // the first warms the server up
				f.cpu += whole.CPU(t, "kube-apiserver") - before
			}
		}
	}
	for _, f := range formats {
		t.Logf("%s: a WatchList of %d pods has %d bytes and takes the server %v of CPU", f.name, pods, f.size, f.cpu/rounds)
	}
	if json, proto := formats[0], formats[1]; proto.size >= json.size || proto.cpu >= json.cpu {
		t.Error("protobuf costs the server no less than JSON")
	}
}
