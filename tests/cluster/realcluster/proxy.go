package realcluster

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
)

// Proxy stands between one client and the API server. It can cut the line, or hold back a stream so that the client lives in the
// past while its writes still arrive. It shows a certificate of the cluster's own authority and passes tokens on.
type Proxy struct {
	Server string // the address to give to the client

	web   *http.Server
	mutex sync.Mutex
	wake  *sync.Cond
	cut   bool
	lines map[net.Conn]bool
	held  func(*http.Request) bool
}

// NewProxy listens on a free port and forwards to the control plane's API server.
func NewProxy(cp *ControlPlane) (*Proxy, error) {
	pair, err := cp.CA.Server()
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(cp.Server)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(cp.CA.PEM)
	p := &Proxy{Server: "https://" + listener.Addr().String(), lines: map[net.Conn]bool{}, held: func(*http.Request) bool { return false }}
	p.wake = sync.NewCond(&p.mutex)
	silent := log.New(io.Discard, "", 0) // cut lines are the purpose
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		ErrorLog:      silent,
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, DisableCompression: true},
		ModifyResponse: func(r *http.Response) error {
			r.Body = &holdable{ReadCloser: r.Body, proxy: p, request: r.Request}
			return nil
		},
	}
	p.web = &http.Server{Handler: forward, ErrorLog: silent, ConnState: p.track, TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}}
	go func() { _ = p.web.ServeTLS(listener, "", "") }()
	return p, nil
}

func (p *Proxy) track(line net.Conn, state http.ConnState) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(p.lines, line)
	case http.StateNew:
		p.lines[line] = true
		if p.cut {
			line.Close()
		}
	}
}

// Cut closes every connection and each new one until Mend.
func (p *Proxy) Cut() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.cut = true
	for line := range p.lines {
		line.Close()
	}
}

// Mend lets connections through again.
func (p *Proxy) Mend() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.cut = false
}

// Hold keeps back what the server says in answer to these requests, from now on and in streams that are already open; nothing is
// lost. Hold(nil) lets all of it through.
func (p *Proxy) Hold(which func(*http.Request) bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if which == nil {
		which = func(*http.Request) bool { return false }
	}
	p.held = which
	p.wake.Broadcast()
}

// Close ends the proxy.
func (p *Proxy) Close() {
	p.Hold(nil)
	p.web.Close()
}

type holdable struct {
	io.ReadCloser
	proxy   *Proxy
	request *http.Request
}

func (h *holdable) Read(into []byte) (int, error) {
	n, err := h.ReadCloser.Read(into)
	h.proxy.mutex.Lock()
	defer h.proxy.mutex.Unlock()
	for h.proxy.held(h.request) && h.request.Context().Err() == nil {
		h.proxy.wake.Wait()
	}
	return n, err
}
