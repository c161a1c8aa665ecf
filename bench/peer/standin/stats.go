package standin

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"syscall"
)

// Stats is what has been counted up to now.
type Stats struct {
	Pods      int            `json:"pods"`
	Counts    map[string]int `json:"counts"`        // requests by verb and resource, such as "PATCH pods/status"
	Evictions map[string]int `json:"evictions"`     // by HTTP code and note, such as "201 healthy"; see Eviction
	Synced    int64          `json:"synced"`        // complete lists of the pods of all namespaces that were sent
	SyncedAt  int64          `json:"synced_at_ns"`  // when the last of them had been sent
	Streaming int64          `json:"streaming"`     // whole lists of any kind that are being sent
	FirstList int64          `json:"first_list_ns"` // when the first list or watch arrived
	Sent      int64          `json:"sent"`          // updates made by the last Rate
	Behind    int64          `json:"behind"`        // events not yet written to the pods' watch
	CPU       float64        `json:"cpu_s"`         // of this process, user and system, in seconds
}

// Stats counts up to now.
func (s *Server) Stats() Stats {
	notes := map[string]int{}
	s.mu.Lock()
	for _, e := range s.evictions {
		notes[strings.TrimSpace(fmt.Sprintf("%d %s", e.Code, e.Note))]++
	}
	pods := len(s.pods().objs)
	s.mu.Unlock()
	s.countMu.Lock()
	counts := maps.Clone(s.counts)
	s.countMu.Unlock()
	var u syscall.Rusage
	syscall.Getrusage(0, &u)
	return Stats{
		Pods: pods, Counts: counts, Evictions: notes,
		Synced: s.synced.Load(), SyncedAt: s.syncedAt.Load(), Streaming: s.streaming.Load(), FirstList: s.firstList.Load(),
		Sent: s.sent.Load(), Behind: s.behind.Load(), CPU: float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9,
	}
}

// Writes are the requests that change something. Leases are apart: they are renewed whatever happens. Questions about rights
// change nothing.
func (s Stats) Writes() (n, leases int) {
	for key, v := range s.Counts {
		switch verb, what, _ := strings.Cut(key, " "); verb {
		case "POST", "PUT", "PATCH", "DELETE":
			if what == "leases" {
				leases += v
			} else if what != "selfsubjectaccessreviews" {
				n += v
			}
		}
	}
	return n, leases
}

// Reads are the requests for one object; leases are apart.
func (s Stats) Reads() (n int) {
	for key, v := range s.Counts {
		if what, get := strings.CutPrefix(key, "GET "); get && what != "leases" {
			n += v
		}
	}
	return n
}

// Wait returns as soon as what has been counted is as asked for, or with the context's error. It looks at each request that
// arrives, each complete list and each pod that has gone.
func (s *Server) Wait(ctx context.Context, asked func(Stats) bool) error {
	for {
		s.countMu.Lock()
		news := s.news
		s.countMu.Unlock()
		if asked(s.Stats()) {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Server) count(what string) {
	s.countMu.Lock()
	defer s.countMu.Unlock()
	s.counts[what]++
	s.tell()
}

// tell wakes who waits. The caller holds countMu.
func (s *Server) tell() {
	close(s.news)
	s.news = make(chan struct{})
}
