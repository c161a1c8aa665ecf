package standin

import (
	"context"
	"fmt"
	"net/url"
	"sort"
	"strconv"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	eventsAWrite  = 64               // events that are written together
	bookmarkEvery = time.Minute      // as kube-apiserver's watch cache does
	longestWatch  = 30 * time.Minute // of a client that names no timeoutSeconds
)

// watcher is one watch: who it is for and how far it has come.
type watcher struct {
	*call
	s   *Server
	out watchText
	pos uint64 // of the next event among all events ever of the kind
	rv  uint64 // the version that the client began from
}

// watch answers a WATCH or a WatchList until the client, its timeout, or a history that is too short ends it.
//
// Source: KEP-3157 (sendInitialEvents asks for resourceVersionMatch=NotOlderThan; the bookmark that ends the initial events).
func (s *Server) watch(c *call) {
	q := c.r.URL.Query()
	rv, _ := strconv.ParseUint(q.Get("resourceVersion"), 10, 64)
	watchList := q.Get("sendInitialEvents") == "true"
	if watchList && q.Get("resourceVersionMatch") != "NotOlderThan" {
		c.fail(apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", nil))
		return
	}
	w := &watcher{call: c, s: s, out: newWatchText(c), rv: rv}
	if c.pb {
		s.count("PROTOBUF WATCH " + c.k.plural)
		c.Header().Set("Content-Type", protobufType+";stream=watch")
	}
	if watchList || rv == 0 {
		if w.initially(watchList) != nil {
			return
		}
	} else {
		s.mu.Lock()
		tooOld := rv < c.k.oldest
		w.pos = c.k.start + uint64(sort.Search(len(c.k.log), func(i int) bool { return c.k.log[i].rv > rv }))
		s.mu.Unlock()
		if tooOld {
			w.expired()
			return
		}
	}
	c.flush() // the headers at least
	ctx, cancel := context.WithTimeout(c.r.Context(), timeout(q))
	defer cancel()
	w.follow(ctx, q.Get("allowWatchBookmarks") == "true")
}

func timeout(q url.Values) time.Duration {
	if seconds, _ := strconv.Atoi(q.Get("timeoutSeconds")); seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return longestWatch
}

// initially sends every object as ADDED, and the bookmark that ends them if one is asked for.
func (w *watcher) initially(bookmark bool) error {
	w.s.mu.Lock()
	now := w.s.rv
	items, _ := w.k.snapshot("", 0, w.match)
	w.pos = w.k.start + uint64(len(w.k.log))
	w.s.mu.Unlock()
	done := w.s.initial(w.call)
	for _, o := range items {
		if w.out.add("ADDED", o); w.out.size() > chunk {
			if err := w.send(); err != nil {
				done(false)
				return err
			}
		}
	}
	if bookmark {
		w.out.bookmark(now, true)
	}
	err := w.send()
	w.flush()
	done(err == nil)
	return err
}

func (w *watcher) send() error {
	_, err := w.Write(w.out.take())
	return err
}

// expired is the last word of a watch from a version that is forgotten: 410.
func (w *watcher) expired() {
	w.s.count("410 WATCH " + w.k.plural)
	w.out.expired(fmt.Sprintf("too old resource version: %d (%d)", w.rv, w.k.oldest))
	w.send()
}

// follow sends what happens, and bookmarks while nothing does.
func (w *watcher) follow(ctx context.Context, bookmarks bool) {
	tick := time.NewTicker(bookmarkEvery)
	defer tick.Stop()
	for {
		batch, changed, now, tooOld := w.pending()
		if tooOld { // slower than the history, which ends a real watch too
			w.expired()
			return
		}
		if len(batch) > 0 {
			if w.tell(batch) != nil {
				return
			}
			continue
		}
		select {
		case <-changed:
		case <-tick.C:
			if bookmarks {
				w.out.bookmark(now, false)
				if w.send() != nil {
					return
				}
				w.flush()
			}
		case <-ctx.Done():
			return
		}
	}
}

// pending is what is to be sent next, and what is closed when there is more.
func (w *watcher) pending() (batch []event, changed <-chan struct{}, now uint64, tooOld bool) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.pos < w.k.start {
		return nil, nil, 0, true
	}
	batch = w.k.log[w.pos-w.k.start:]
	if w.k == w.s.pods() {
		w.s.behind.Store(int64(len(batch)))
	}
	return batch[:min(len(batch), eventsAWrite)], w.k.changed, w.s.rv, false
}

func (w *watcher) tell(batch []event) error {
	for _, e := range batch {
		if w.match == nil || w.match(e.obj) {
			w.out.add(e.typ, e.obj)
		}
	}
	if err := w.send(); err != nil {
		return err
	}
	w.flush()
	for _, e := range batch {
		if e.probe != nil {
			atomic.CompareAndSwapInt64(&e.probe.Written, 0, nowNS())
		}
	}
	w.pos += uint64(len(batch))
	return nil
}
