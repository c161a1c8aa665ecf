package standin

import (
	"bytes"
	"sort"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// history is how many events are kept of each kind; a watch that falls further behind is told 410.
const history = 20000

// firstVersion has ten digits, as every later one: a version is replaced in protobuf without changing a length.
const firstVersion = 1000000000

var versionKey = []byte(`"resourceVersion":"`)

// store holds everything under one lock; resource versions are global, as in etcd.
type store struct {
	mu     sync.Mutex
	rv     uint64
	kinds  []*kind
	probes map[string]*probe // by pod UID
}

func newStore() store {
	return store{rv: firstVersion, kinds: servedKinds(), probes: map[string]*probe{}}
}

func (s *store) pods() *kind { return s.kinds[0] }

func (s *store) find(gv, plural string) *kind {
	for _, k := range s.kinds {
		if k.gv == gv && k.plural == plural {
			return k
		}
	}
	return nil
}

// nowNS is CLOCK_MONOTONIC in ns: one clock for every process on this machine.
func nowNS() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

func wallTime() string { return time.Now().UTC().Format(time.RFC3339) }

// put publishes raw, under a new resourceVersion, as the state of o (typ DELETED: its last one). pb is the same in
// protobuf, but for the version; nil: made when it is needed. The caller holds mu.
func (s *store) put(k *kind, typ string, o *object, raw, pb []byte, p *probe) *object {
	s.rv++
	i := bytes.Index(raw, versionKey) + len(versionKey)
	j := i + bytes.IndexByte(raw[i:], '"')
	out := append(make([]byte, 0, len(raw)+12), raw[:i]...)
	n := &object{ns: o.ns, name: o.name, uid: o.uid, raw: append(strconv.AppendUint(out, s.rv, 10), raw[j:]...)}
	if pb = withVersion(pb, string(raw[i:j]), s.rv); pb != nil {
		n.pb.Store(&pb)
	}
	if key := n.key(); typ == "DELETED" { // its key stays, so that a million keys need not move
		delete(k.objs, key)
	} else {
		k.insert(key, n)
	}
	if p != nil {
		p.Published = nowNS()
	}
	k.publish(event{typ, s.rv, n, p})
	return n
}

func (k *kind) insert(key string, o *object) {
	if at := sort.SearchStrings(k.keys, key); at == len(k.keys) || k.keys[at] != key {
		k.keys = append(k.keys, "")
		copy(k.keys[at+1:], k.keys[at:])
		k.keys[at] = key
	}
	k.objs[key] = o
}

func (k *kind) publish(e event) {
	k.log = append(k.log, e)
	if cut := len(k.log) - history; cut > history/4 {
		k.start, k.oldest = k.start+uint64(cut), k.log[cut-1].rv
		k.log = append(make([]event, 0, history*5/4+1), k.log[cut:]...) // readers keep the old slice
	}
	close(k.changed)
	k.changed = make(chan struct{})
}

// snapshot returns up to limit (0: all) objects after key `from` that match, and how many keys follow. The caller holds mu.
func (k *kind) snapshot(from string, limit int, match func(*object) bool) (out []*object, left int) {
	i := sort.SearchStrings(k.keys, from)
	if i < len(k.keys) && k.keys[i] == from {
		i++
	}
	for ; i < len(k.keys); i++ {
		if limit > 0 && len(out) == limit {
			return out, len(k.keys) - i
		}
		if o := k.objs[k.keys[i]]; o != nil && (match == nil || match(o)) {
			out = append(out, o)
		}
	}
	return out, 0
}

// remove deletes an object if it is there, and still the same one when a UID is given.
func (s *store) remove(k *kind, key, uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := k.objs[key]; o != nil && (uid == "" || uid == o.uid) {
		s.put(k, "DELETED", o, o.text(), o.encoded(), nil)
	}
}

// Compact forgets all history: every resourceVersion that a client can hold is too old from now on.
func (s *store) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv++
	for _, k := range s.kinds {
		k.oldest = s.rv
	}
}
