package standin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// call is one request, taken apart.
type call struct {
	http.ResponseWriter
	r        *http.Request
	k        *kind
	ns, name string
	what     string             // resource and subresource, such as pods/eviction
	match    func(*object) bool // nil: all
	pb       bool               // the client prefers protobuf
	partial  bool               // the client wants metadata only
}

func (c *call) flush() { c.ResponseWriter.(http.Flusher).Flush() }

func (c *call) gr() schema.GroupResource {
	return schema.GroupResource{Group: c.k.group, Resource: c.k.plural}
}

// ServeHTTP answers one request of a client.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	c := &call{ResponseWriter: w, r: r}
	if r.Header.Get("Authorization") != "Bearer "+Token {
		s.count("401 " + r.URL.Path)
		c.fail(apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	if doc := s.discovery(r.URL.Path); doc != nil {
		s.count("DISCOVERY " + r.URL.Path)
		json.NewEncoder(w).Encode(doc)
		return
	}
	if r.Method == "POST" && r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" {
		s.count("POST selfsubjectaccessreviews")
		c.review()
		return
	}
	if !c.take(s) {
		s.count("404 " + r.Method + " " + r.URL.Path)
		c.fail(apierrors.NewGenericServerResponse(404, r.Method, schema.GroupResource{}, "", "", 0, true))
		return
	}
	s.serve(c)
}

// take reads the path, /api/v1/... or /apis/GROUP/VERSION/..., then [namespaces/NS/]PLURAL[/NAME[/SUBRESOURCE]]; false for a
// kind that is not served.
func (c *call) take(s *Server) bool {
	seg := strings.Split(strings.Trim(c.r.URL.Path, "/"), "/")
	gv, rest := "v1", seg[min(2, len(seg)):]
	if seg[0] == "apis" && len(seg) > 3 {
		gv, rest = seg[1]+"/"+seg[2], seg[3:]
	}
	if len(rest) > 2 && rest[0] == "namespaces" {
		c.ns, rest = rest[1], rest[2:]
	}
	rest = append(rest, "", "", "")
	accept := c.r.Header.Get("Accept")
	c.k, c.name = s.find(gv, rest[0]), rest[1]
	c.what = strings.TrimSuffix(rest[0]+"/"+rest[2], "/")
	c.pb = strings.HasPrefix(accept, protobufType)
	c.partial = strings.Contains(accept, "as=PartialObjectMetadata")
	return c.k != nil
}

func (s *Server) serve(c *call) {
	q := c.r.URL.Query()
	if c.r.Method == "GET" && c.name == "" {
		s.firstList.CompareAndSwap(0, nowNS())
		c.match = c.selector(q.Get("fieldSelector"), q.Get("labelSelector"))
	}
	switch {
	case c.r.Method != "GET":
		s.write(c)
	case c.name != "":
		s.count("GET " + c.what)
		s.mu.Lock()
		o := c.k.objs[c.ns+"/"+c.name]
		s.mu.Unlock()
		c.answer(200, o)
	case q.Get("watch") == "true" || q.Get("watch") == "1":
		s.count(map[bool]string{true: "WATCHLIST ", false: "WATCH "}[q.Get("sendInitialEvents") == "true"] + c.what)
		s.watch(c)
	default:
		s.count("LIST " + c.what)
		s.list(c)
	}
}

// fail answers with a Status in JSON, whatever the client prefers: each client reads it.
func (c *call) fail(err error) {
	var e *apierrors.StatusError
	if !errors.As(err, &e) {
		e = apierrors.NewBadRequest(err.Error())
	}
	e.ErrStatus.Kind, e.ErrStatus.APIVersion = "Status", "v1"
	c.WriteHeader(int(e.ErrStatus.Code))
	json.NewEncoder(c).Encode(e.ErrStatus)
}

// answer is one object, or 404 for nil.
func (c *call) answer(code int, o *object) {
	if o == nil {
		c.fail(apierrors.NewNotFound(c.gr(), c.name))
		return
	}
	if c.pb {
		pb := o.protobuf(c.k)
		c.Header().Set("Content-Type", protobufType)
		c.WriteHeader(code)
		c.Write(append(append(envelope(nil, c.k.gv, c.k.kind, len(pb)), pb...), tail...))
		return
	}
	c.WriteHeader(code)
	fmt.Fprintf(c, `{"kind":"%s","apiVersion":"%s",%s`, c.k.kind, c.k.gv, o.text()[1:])
}

// review says yes to every question about rights.
func (c *call) review() {
	var ask map[string]any
	if err := json.NewDecoder(io.LimitReader(c.r.Body, 1<<20)).Decode(&ask); err != nil {
		c.fail(err)
		return
	}
	ask["status"] = map[string]any{"allowed": true}
	c.WriteHeader(201)
	json.NewEncoder(c).Encode(ask)
}

// selector understands namespace, metadata.name and equality of one label; other terms select everything.
func (c *call) selector(fields, labels string) func(*object) bool {
	name, label := "", ""
	for f := range strings.SplitSeq(fields, ",") {
		if v, ok := strings.CutPrefix(f, "metadata.name="); ok {
			name = strings.TrimPrefix(v, "=")
		}
	}
	if k, v, ok := strings.Cut(labels, "="); ok && !strings.ContainsAny(labels, ",!") {
		label = fmt.Sprintf("%q:%q", k, strings.TrimPrefix(v, "="))
	}
	if c.ns+name+label == "" {
		return nil
	}
	return func(o *object) bool {
		return (c.ns == "" || o.ns == c.ns) && (name == "" || o.name == name) && (label == "" || strings.Contains(string(o.text()), label))
	}
}
