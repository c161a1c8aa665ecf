package standin

import (
	"bytes"
	"sync/atomic"
)

// object is immutable; an update makes a new one. Its JSON stands in raw, or, as long as nobody has changed a generated
// object, in a shape and its values: a million pods fit in memory so.
type object struct {
	ns, name, uid string
	raw           []byte // JSON without kind and apiVersion, as it stands in a list
	shape         *shape
	vals          []byte
	pb            atomic.Pointer[[]byte] // the same in protobuf, once somebody has asked for it
}

func (o *object) key() string { return o.ns + "/" + o.name }

// json appends the object to out.
func (o *object) json(out []byte) []byte {
	if o.raw != nil {
		return append(out, o.raw...)
	}
	return o.shape.fill(out, o.vals)
}

func (o *object) text() []byte {
	if o.raw != nil {
		return o.raw
	}
	return o.json(make([]byte, 0, 16<<10))
}

// encoded is the protobuf of the object if it has been made, else nil.
func (o *object) encoded() []byte {
	if pb := o.pb.Load(); pb != nil {
		return *pb
	}
	return nil
}

// word is what stands between mark and the next quote; empty without the mark.
func word(raw, mark []byte) string {
	_, rest, found := bytes.Cut(raw, mark)
	if !found {
		return ""
	}
	w, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(w)
}
