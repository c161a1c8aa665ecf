package standin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Eviction is one line of the log of received evictions.
type Eviction struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`         // the precondition sent, else the pod's own
	Received  int64  `json:"received_ns"` // CLOCK_MONOTONIC
	Code      int    `json:"code"`
	Note      string `json:"note,omitempty"` // duplicate: the pod was leaving; healthy: no device of it had failed; dry run
}

// Evictions are all that were received, in their order.
func (s *Server) Evictions() []Eviction {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Eviction{}, s.evictions...)
}

func (s *Server) evict(c *call, body []byte, arrived int64) {
	line, dry, err := asked(c, body)
	if err != nil {
		c.fail(err)
		return
	}
	line.Received = arrived
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.evictions = append(s.evictions, line) }()
	o := c.k.objs[c.ns+"/"+c.name]
	if o == nil {
		line.Code = 404
		c.answer(404, nil)
		return
	}
	if line.UID != "" && line.UID != o.uid {
		line.Code = 409
		c.fail(apierrors.NewConflict(c.gr(), c.name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", line.UID, o.uid)))
		return
	}
	line.UID = o.uid
	switch p := s.probes[o.uid]; {
	case dry:
		line.Note = "dry run"
	case bytes.Contains(o.text(), leavingKey):
		line.Note = "duplicate"
	case p == nil:
		line.Note = "healthy"
		s.letGo(o)
	default:
		p.Received = arrived
		s.letGo(o)
	}
	c.WriteHeader(201)
	c.Write([]byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}` + "\n"))
}

// asked reads the body of an eviction.
func asked(c *call, body []byte) (line Eviction, dry bool, err error) {
	var e policyv1.Eviction
	if c.r.Header.Get("Content-Type") == protobufType {
		err = unwrapped(body, &e)
	} else {
		err = json.Unmarshal(body, &e)
	}
	line = Eviction{Namespace: c.ns, Name: c.name, Code: 201}
	dry = c.r.URL.Query().Has("dryRun")
	if o := e.DeleteOptions; o != nil {
		dry = dry || len(o.DryRun) > 0
		if o.Preconditions != nil && o.Preconditions.UID != nil {
			line.UID = string(*o.Preconditions.UID)
		}
	}
	return line, dry, err
}

// letGo marks a pod as leaving, and removes it and its claim when it has lingered. The caller holds mu.
func (s *Server) letGo(o *object) {
	s.terminate(o)
	time.AfterFunc(s.linger, func() {
		s.remove(s.pods(), o.key(), o.uid)
		s.remove(s.find("resource.k8s.io/v1", "resourceclaims"), o.key()+"-gpu", "")
		s.countMu.Lock()
		defer s.countMu.Unlock()
		s.tell()
	})
}
