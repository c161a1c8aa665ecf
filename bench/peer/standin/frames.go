package standin

import (
	"bytes"
	"encoding/binary"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
)

// Protobuf as kube-apiserver serves it: an object is "k8s\x00" and a runtime.Unknown around it, a watch is a row of
// metav1.WatchEvents, each after its length in four bytes.
//
// Source: k8s.io/apimachinery/pkg/runtime/serializer/protobuf, k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto (v0.37.1).
const protobufType = "application/vnd.kubernetes.protobuf"

var (
	magic = []byte("k8s\x00")
	tail  = []byte("\x1a\x00\x22\x00") // contentEncoding and contentType, empty
)

func varint(n int) int { return len(binary.AppendUvarint(nil, uint64(n))) }

// fieldHead appends the head of a length-delimited field.
func fieldHead(out []byte, number byte, size int) []byte {
	return binary.AppendUvarint(append(out, number<<3|2), uint64(size))
}

func fieldSize(size int) int { return 1 + varint(size) + size }

// envelope appends what stands before an object of a size; tail ends it.
func envelope(out []byte, apiVersion, kind string, size int) []byte {
	out = append(out, magic...)
	out = fieldHead(out, 1, fieldSize(len(apiVersion))+fieldSize(len(kind)))
	out = append(fieldHead(out, 1, len(apiVersion)), apiVersion...)
	out = append(fieldHead(out, 2, len(kind)), kind...)
	return fieldHead(out, 2, size)
}

// enveloped is how many bytes an object of a size has with its envelope and tail.
func enveloped(apiVersion, kind string, size int) int {
	return len(magic) + fieldSize(fieldSize(len(apiVersion))+fieldSize(len(kind))) + fieldSize(size) + len(tail)
}

// frame appends one event of a watch.
func frame(out []byte, typ, apiVersion, kind string, object []byte) []byte {
	whole := enveloped(apiVersion, kind, len(object))
	out = binary.BigEndian.AppendUint32(out, uint32(fieldSize(len(typ))+fieldSize(fieldSize(whole))))
	out = append(fieldHead(out, 1, len(typ)), typ...)
	out = fieldHead(out, 2, fieldSize(whole))
	out = fieldHead(out, 1, whole)
	return append(append(envelope(out, apiVersion, kind, len(object)), object...), tail...)
}

// onlyMeta is an object with nothing but metadata, as a bookmark has it.
func onlyMeta(m metav1.ObjectMeta) []byte {
	raw, err := m.Marshal()
	must(err)
	return append(fieldHead(nil, 1, len(raw)), raw...)
}

// listHead is what stands before the items of a list.
func listHead(k *kind, m metav1.ListMeta, items []*object) []byte {
	meta, err := m.Marshal()
	must(err)
	size := fieldSize(len(meta))
	for _, o := range items {
		size += fieldSize(len(o.protobuf(k)))
	}
	return append(fieldHead(envelope(nil, k.gv, k.kind+"List", size), 1, len(meta)), meta...)
}

// unwrapped is the object in the body of a protobuf request.
func unwrapped(body []byte, into interface{ Unmarshal([]byte) error }) error {
	var u kruntime.Unknown
	if err := u.Unmarshal(bytes.TrimPrefix(body, magic)); err != nil {
		return err
	}
	return into.Unmarshal(u.Raw)
}
