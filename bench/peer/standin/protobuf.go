package standin

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"sync"
	"time"
)

type marshaler interface{ Marshal() ([]byte, error) }

// encode is the object in protobuf, without the envelope. It panics on an object that its own kind cannot hold.
func encode(k *kind, raw []byte) []byte {
	v := reflect.New(reflect.TypeOf(k.typed)).Interface()
	must(json.Unmarshal(raw, v))
	out, err := v.(marshaler).Marshal()
	must(err)
	return out
}

func (o *object) protobuf(k *kind) []byte {
	if pb := o.encoded(); pb != nil {
		return pb
	}
	pb := encode(k, o.text())
	o.pb.Store(&pb)
	return pb
}

// EncodeAll makes the protobuf of all objects before anybody asks, so that it does not count as the server's time.
func (s *store) EncodeAll() {
	for _, k := range s.kinds {
		var wait sync.WaitGroup
		workers := runtime.NumCPU()
		for w := range workers {
			wait.Go(func() {
				for i := w; i < len(k.keys); i += workers {
					k.objs[k.keys[i]].protobuf(k)
				}
			})
		}
		wait.Wait()
	}
}

// withVersion replaces the resourceVersion: both have ten digits, so no length changes.
func withVersion(pb []byte, old string, rv uint64) []byte {
	if pb == nil {
		return nil
	}
	at := bytes.Index(pb, fmt.Appendf(nil, "\x32\x0a%s", old)) // ObjectMeta.resourceVersion
	if at < 0 {
		return nil
	}
	pb = bytes.Clone(pb)
	copy(pb[at+2:], strconv.FormatUint(rv, 10))
	return pb
}

// withLastTime replaces the lastTransitionTime of a pod's last condition; nil when it is not where we look for it.
func withLastTime(pb []byte, now time.Time) []byte {
	at := bytes.LastIndex(pb, []byte("PodScheduled"))
	if at < 0 {
		return nil
	}
	mark := []byte("\x22\x08\x08") // field 4, eight bytes: seconds as a varint of five, nanos 0
	i := bytes.Index(pb[at:], mark)
	if i < 0 {
		return nil
	}
	pb = bytes.Clone(pb)
	binary.PutUvarint(pb[at+i+len(mark):], uint64(now.Unix()))
	return pb
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
