package standin

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// chunk is how many bytes are gathered before a response is written on.
const chunk = 32 << 10

// initial counts streams that are sending a whole kind; the returned function ends one, sent whole or not.
func (s *Server) initial(c *call) func(whole bool) {
	s.streaming.Add(1)
	return func(whole bool) {
		s.streaming.Add(-1)
		if whole && c.k == s.pods() && c.ns == "" {
			s.syncedAt.Store(nowNS())
			s.synced.Add(1)
		}
		s.countMu.Lock()
		defer s.countMu.Unlock()
		s.tell()
	}
}

// continued is what a continue token holds.
type continued struct {
	RV    uint64
	Start string
}

func (t continued) String() string {
	text, _ := json.Marshal(t)
	return base64.RawURLEncoding.EncodeToString(text)
}

// list answers from the present state; later pages too (a real server keeps one snapshot), under the first page's version.
func (s *Server) list(c *call) {
	q := c.r.URL.Query()
	limit, _ := strconv.Atoi(q.Get("limit"))
	if q.Get("resourceVersion") == "0" {
		limit = 0
	}
	var page continued
	if t, err := base64.RawURLEncoding.DecodeString(q.Get("continue")); err != nil || len(t) > 0 && json.Unmarshal(t, &page) != nil {
		c.fail(apierrors.NewBadRequest("continue key is not valid"))
		return
	}
	s.mu.Lock()
	items, left := c.k.snapshot(page.Start, limit, c.match)
	tooOld := page.RV != 0 && page.RV < c.k.oldest
	if page.RV == 0 {
		page.RV = s.rv
	}
	s.mu.Unlock()
	if tooOld {
		c.fail(apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result."))
		return
	}
	meta := metav1.ListMeta{ResourceVersion: fmt.Sprint(page.RV)}
	if left > 0 {
		page.Start = items[len(items)-1].key()
		rest := int64(left)
		meta.Continue, meta.RemainingItemCount = page.String(), &rest
	}
	done := s.initial(c)
	if c.pb {
		s.count("PROTOBUF LIST " + c.k.plural)
	}
	err := c.page(meta, items)
	c.flush()
	done(err == nil && left == 0)
}

// page writes a list in the encoding that the client prefers.
func (c *call) page(meta metav1.ListMeta, items []*object) error {
	out, end := make([]byte, 0, 2*chunk), []byte("]}\n")
	if c.pb {
		c.Header().Set("Content-Type", protobufType)
		out, end = append(out, listHead(c.k, meta, items)...), tail
	} else {
		name, gv := c.shown()
		text, _ := json.Marshal(meta)
		out = fmt.Appendf(out, `{"kind":"%sList","apiVersion":"%s","metadata":%s,"items":[`, name, gv, text)
	}
	for i, o := range items {
		if c.pb {
			pb := o.protobuf(c.k)
			out = append(fieldHead(out, 2, len(pb)), pb...)
		} else {
			if i > 0 {
				out = append(out, ',')
			}
			out = c.json(out, o)
		}
		if len(out) > chunk {
			if _, err := c.Write(out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	_, err := c.Write(append(out, end...))
	return err
}

// shown is how JSON calls the kind and its version.
func (c *call) shown() (kind, gv string) {
	if c.partial {
		return "PartialObjectMetadata", "meta.k8s.io/v1"
	}
	return c.k.kind, c.k.gv
}

// json appends the object, or its metadata if the client wants no more.
func (c *call) json(out []byte, o *object) []byte {
	if !c.partial {
		return o.json(out)
	}
	var d struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	must(json.Unmarshal(o.text(), &d))
	return fmt.Appendf(out, `{"metadata":%s}`, d.Metadata)
}
