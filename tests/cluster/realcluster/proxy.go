package realcluster

import (
	"io"
	"net"
	"strings"
	"sync"
)

// Proxy stands between a client and the API server and can cut the line. It passes TLS through, so the client sees the
// server's own certificate.
type Proxy struct {
	Server string // the address to give to the client

	target   string
	listener net.Listener
	mutex    sync.Mutex
	cut      bool
	lines    map[net.Conn]bool
}

// NewProxy listens on a free port and forwards to the control plane's API server.
func NewProxy(cp *ControlPlane) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		Server: "https://" + listener.Addr().String(), target: strings.TrimPrefix(cp.Server, "https://"),
		listener: listener, lines: map[net.Conn]bool{},
	}
	go p.serve()
	return p, nil
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil || !p.keep(client, server) {
			client.Close()
			if server != nil {
				server.Close()
			}
			continue
		}
		go p.pass(client, server)
		go p.pass(server, client)
	}
}

func (p *Proxy) keep(ends ...net.Conn) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, end := range ends {
		if !p.cut {
			p.lines[end] = true
		}
	}
	return !p.cut
}

func (p *Proxy) pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	to.Close()
	from.Close()
	delete(p.lines, to)
	delete(p.lines, from)
}

// Cut closes every connection and refuses new ones until Mend.
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

// Close ends the proxy.
func (p *Proxy) Close() {
	p.Cut()
	p.listener.Close()
}
