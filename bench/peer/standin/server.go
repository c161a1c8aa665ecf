// Package standin stands in for an API server where the cost of controllers is measured: many realistic pods, few features,
// no delay. What it leaves out is in README.md.
package standin

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

// Token is the bearer token that every request must carry.
const Token = "stand-in"

// Options of a Server.
type Options struct {
	World
	Unhealthy int           // pods whose device is Unhealthy from the start
	Linger    time.Duration // from an eviction to the pod's DELETED
	Protobuf  bool          // all objects are encoded in protobuf before the start
}

// Server is the stand-in: a store, what is to fail next, and what has been counted.
type Server struct {
	store
	PodBytes int // of all pods at the start, in JSON

	seed      uint64
	linger    time.Duration
	order     []string // pods in the order in which their devices will fail
	next      int
	batches   int
	evictions []Eviction
	api       *httptest.Server

	countMu sync.Mutex
	counts  map[string]int
	news    chan struct{} // closed at the next count

	streaming, synced, syncedAt, sent, behind, firstList atomic.Int64
}

// New generates the objects; nothing listens yet.
func New(o Options) *Server {
	s := &Server{store: newStore(), seed: o.Seed, linger: o.Linger, counts: map[string]int{}, news: make(chan struct{})}
	s.PodBytes = generate(&s.store, o.World)
	for _, i := range rand.New(rand.NewPCG(o.Seed, 7)).Perm(o.Pods) {
		s.order = append(s.order, s.pods().keys[i])
	}
	s.Fail(o.Unhealthy, 0)
	if o.Protobuf {
		s.EncodeAll()
	}
	return s
}

// Start listens on a free port of the loopback, with TLS (HTTP/1.1 and HTTP/2), and writes `kubeconfig` and `ca.crt` into the
// folder. It returns the kubeconfig's path. What the HTTP server has to complain about goes to complaints.
func (s *Server) Start(folder string, complaints io.Writer) (kubeconfig string, err error) {
	chain, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil) // leaf, then its CA
	if err != nil {
		return "", err
	}
	cert, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return "", err
	}
	_, ca := pem.Decode(chain)
	s.api = httptest.NewUnstartedServer(s)
	s.api.EnableHTTP2, s.api.TLS = true, &tls.Config{Certificates: []tls.Certificate{cert}}
	s.api.Config.ErrorLog = log.New(complaints, "standin: ", 0)
	s.api.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.count("connections")
		}
	}
	s.api.StartTLS()
	kubeconfig = filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(filepath.Join(folder, "ca.crt"), ca, 0o644); err != nil {
		return "", err
	}
	return kubeconfig, os.WriteFile(kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: stand-in
clusters: [{name: stand-in, cluster: {server: "%s", certificate-authority-data: "%s"}}]
users: [{name: stand-in, user: {token: "%s"}}]
contexts: [{name: stand-in, context: {cluster: stand-in, user: stand-in}}]
`, s.api.URL, base64.StdEncoding.EncodeToString(ca), Token), 0o600)
}

// Drop closes all connections of clients.
func (s *Server) Drop() { s.api.CloseClientConnections() }

// Close ends the server, requests under way included.
func (s *Server) Close() {
	s.api.CloseClientConnections()
	s.api.Close()
}
