package standin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/yaml"
)

// mostBytes is what kube-apiserver reads of a request's body at most.
const mostBytes = 3 << 20

// write is everything that is not GET. It is well-behaved, without admission, defaulting or field ownership.
func (s *Server) write(c *call) {
	arrived := nowNS()
	body, err := io.ReadAll(io.LimitReader(c.r.Body, mostBytes))
	if err != nil {
		return
	}
	if c.what == "pods/eviction" {
		s.evict(c, body, arrived) // before it is counted: who waits for the count finds it
		s.count(c.r.Method + " " + c.what)
		return
	}
	s.count(c.r.Method + " " + c.what)
	if c.k.plural == "events" { // counted, not kept
		c.WriteHeader(map[bool]int{true: 201, false: 200}[c.r.Method == "POST"])
		c.Write(body)
		return
	}
	s.mu.Lock()
	o, code, err := s.apply(c, body)
	s.mu.Unlock()
	if err != nil {
		s.count(fmt.Sprintf("failed %s %s: %s", c.r.Method, c.what, apierrors.ReasonForError(err)))
		c.fail(err)
		return
	}
	c.answer(code, o)
}

// fields is an object that is taken apart.
type fields map[string]any

func (f fields) meta() map[string]any {
	if _, ok := f["metadata"].(map[string]any); !ok {
		f["metadata"] = map[string]any{}
	}
	return f["metadata"].(map[string]any)
}

func (f fields) text(key string) string { v, _ := f.meta()[key].(string); return v }

// taken reads JSON, which is quick, or YAML.
func taken(raw []byte) (fields, error) {
	f := fields{}
	if json.Unmarshal(raw, &f) == nil {
		return f, nil
	}
	f = fields{}
	return f, yaml.Unmarshal(raw, &f)
}

// apply is create, update, patch and delete of any kind. The caller holds mu.
func (s *Server) apply(c *call, body []byte) (*object, int, error) {
	k, verb := c.k, c.r.Method
	old := k.objs[c.ns+"/"+c.name]
	create := verb == "POST" || old == nil && c.r.Header.Get("Content-Type") == applyType
	switch {
	case create:
		return s.create(c, body)
	case old == nil:
		return nil, 0, apierrors.NewNotFound(c.gr(), c.name)
	case verb == "DELETE":
		return s.put(k, "DELETED", old, old.text(), nil, nil), 200, nil
	case verb == "PATCH":
		if raw := withCondition(c, old, body); raw != nil {
			return s.put(k, "MODIFIED", old, raw, nil, nil), 200, nil
		}
		merged, err := merge(c, old.text(), body)
		if err != nil {
			return nil, 0, err
		}
		body = merged
	}
	return s.update(c, old, body)
}

func (s *Server) create(c *call, body []byte) (*object, int, error) {
	f, err := taken(body)
	if err != nil {
		return nil, 0, err
	}
	name := c.name
	if name == "" {
		name = f.text("name")
	}
	if name == "" {
		name = fmt.Sprint(f.text("generateName"), s.rv)
	}
	if c.k.objs[c.ns+"/"+name] != nil {
		return nil, 0, apierrors.NewAlreadyExists(c.gr(), name)
	}
	m := f.meta()
	m["name"], m["uid"], m["creationTimestamp"], m["resourceVersion"] = name, uuid(s.rv, 'w', 0), wallTime(), "0"
	if c.k.namespaced {
		m["namespace"] = c.ns
	}
	return s.put(c.k, "ADDED", &object{ns: c.ns, name: name, uid: f.text("uid")}, f.raw(), nil, nil), 201, nil
}

// raw is the object as it is kept: without kind and apiVersion.
func (f fields) raw() []byte {
	delete(f, "kind")
	delete(f, "apiVersion")
	raw, err := json.Marshal(f)
	must(err)
	return raw
}

// update replaces an object by a whole new text; what changes nothing makes no new version and no event.
func (s *Server) update(c *call, old *object, body []byte) (*object, int, error) {
	f, err := taken(body)
	if err != nil {
		return nil, 0, err
	}
	was, err := taken(old.text())
	if err != nil {
		return nil, 0, err
	}
	if rv := f.text("resourceVersion"); rv != "" && rv != was.text("resourceVersion") {
		return nil, 0, apierrors.NewConflict(c.gr(), c.name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if uid := f.text("uid"); uid != "" && uid != old.uid {
		return nil, 0, apierrors.NewConflict(c.gr(), c.name, fmt.Errorf("Precondition failed: UID in precondition: %s, UID in object meta: %s", uid, old.uid))
	}
	f.meta()["uid"], f.meta()["resourceVersion"] = old.uid, was.text("resourceVersion")
	raw := f.raw()
	if bytes.Equal(raw, was.raw()) {
		return old, 200, nil
	}
	return s.put(c.k, "MODIFIED", old, raw, nil, nil), 200, nil
}
