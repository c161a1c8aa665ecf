package standin

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watchText gathers the bytes of a watch in the encoding that the client prefers.
type watchText struct {
	c      *call
	prefix string // of an event in JSON, from its type's end to its object's metadata
	blank  string // what follows metadata in a bookmark
	out    []byte
}

func newWatchText(c *call) watchText {
	name, gv := c.shown()
	blank := c.k.blank
	if c.partial {
		blank = "}"
	}
	return watchText{c: c, prefix: fmt.Sprintf(`","object":{"kind":"%s","apiVersion":"%s",`, name, gv), blank: blank, out: make([]byte, 0, 2*chunk)}
}

func (t *watchText) size() int { return len(t.out) }

// take returns what has been gathered; it is overwritten by what is added next.
func (t *watchText) take() []byte {
	out := t.out
	t.out = t.out[:0]
	return out
}

func (t *watchText) add(typ string, o *object) {
	if t.c.pb {
		t.out = frame(t.out, typ, t.c.k.gv, t.c.k.kind, o.protobuf(t.c.k))
		return
	}
	t.out = append(append(append(t.out, `{"type":"`...), typ...), t.prefix...)
	// The object's own bracket is written already: over it goes the comma that ends the prefix.
	at := len(t.out) - 1
	t.out = t.c.json(t.out[:at], o)
	t.out[at] = ','
	t.out = append(t.out, "}\n"...)
}

// bookmark says that all events up to rv have been sent; ends: so have all initial ones.
func (t *watchText) bookmark(rv uint64, ends bool) {
	notes, more := map[string]string(nil), ""
	if ends {
		notes, more = map[string]string{metav1.InitialEventsAnnotationKey: "true"}, `,"annotations":{"`+metav1.InitialEventsAnnotationKey+`":"true"}`
	}
	if t.c.pb {
		t.out = frame(t.out, "BOOKMARK", t.c.k.gv, t.c.k.kind, onlyMeta(metav1.ObjectMeta{ResourceVersion: fmt.Sprint(rv), Annotations: notes}))
		return
	}
	t.out = fmt.Appendf(t.out, `{"type":"BOOKMARK%s"metadata":{"resourceVersion":"%d"%s}%s}`+"\n", t.prefix, rv, more, t.blank)
}

func (t *watchText) expired(message string) {
	if t.c.pb {
		raw, err := (&metav1.Status{Status: "Failure", Message: message, Reason: metav1.StatusReasonExpired, Code: 410}).Marshal()
		must(err)
		t.out = frame(t.out, "ERROR", "v1", "Status", raw)
		return
	}
	t.out = fmt.Appendf(t.out, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":"Expired","code":410}}`+"\n", message)
}
