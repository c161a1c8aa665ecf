package standin

import (
	"encoding/json"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// kind is one served kind with its objects and its history.
type kind struct {
	group, gv, plural, kind string
	namespaced              bool
	typed                   any    // the Go type: schema of strategic merge patches and of protobuf
	blank                   string // what follows metadata in the JSON of a bookmark
	objs                    map[string]*object
	keys                    []string // sorted; of deleted objects too
	log                     []event
	start                   uint64        // position of log[0] among all events ever
	oldest                  uint64        // a watch from below this resourceVersion is too old
	changed                 chan struct{} // closed at the next event
}

// event is one change of one object, as a watch tells it.
type event struct {
	typ   string
	rv    uint64
	obj   *object
	probe *probe // of a device's failure, else nil
}

func newKind(gv string, namespaced bool, typed any) *kind {
	name := reflect.TypeOf(typed).Name()
	group, _, grouped := strings.Cut(gv, "/")
	if !grouped {
		group = ""
	}
	blank, _ := json.Marshal(typed)
	return &kind{
		group: group, gv: gv, plural: strings.ToLower(name) + "s", kind: name, namespaced: namespaced, typed: typed,
		blank: strings.TrimPrefix(string(blank), `{"metadata":{}`),
		objs:  map[string]*object{}, changed: make(chan struct{}),
	}
}

// servedKinds are the kinds that are served; the first is pods. Any other is answered with 404.
func servedKinds() []*kind {
	return []*kind{
		newKind("v1", true, corev1.Pod{}),
		newKind("v1", false, corev1.Node{}),
		newKind("v1", false, corev1.Namespace{}),
		newKind("v1", true, corev1.ConfigMap{}),
		newKind("v1", true, corev1.Event{}),
		newKind("apps/v1", true, appsv1.DaemonSet{}),
		newKind("apps/v1", true, appsv1.ReplicaSet{}),
		newKind("apps/v1", true, appsv1.StatefulSet{}),
		newKind("batch/v1", true, batchv1.Job{}),
		newKind("coordination.k8s.io/v1", true, coordinationv1.Lease{}),
		newKind("events.k8s.io/v1", true, eventsv1.Event{}),
		newKind("policy/v1", true, policyv1.PodDisruptionBudget{}),
		newKind("resource.k8s.io/v1", true, resourcev1.ResourceClaim{}),
		newKind("resource.k8s.io/v1", false, resourcev1.ResourceSlice{}),
		newKind("resource.k8s.io/v1", false, resourcev1.DeviceTaintRule{}),
	}
}
