package campaign

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"device-health.io/controller/tests/cluster/realcluster"
)

// request is one of the controller's requests: the N-th of its sort since the proxy was told to count, from 1.
type request struct {
	What string
	N    int
}

func (r request) String() string { return fmt.Sprintf("%s %d", r.What, r.N) }

// writes says whether the request could change something.
func (r request) writes() bool {
	verb, what, _ := strings.Cut(r.What, " ")
	return verb != "get" && verb != "list" && verb != "watch" && !strings.HasPrefix(what, "selfsubjectaccessreviews")
}

// what names the sort of a request: its verb, its resource, and of ConfigMaps also which one.
func what(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return strings.ToLower(r.Method) + " " + r.URL.Path
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update"}[r.Method]
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		verb = "watch"
	case r.Method == http.MethodGet && len(parts) == 1:
		verb = "list"
	case verb == "":
		verb = strings.ToLower(r.Method)
	}
	resource := parts[0]
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	if resource == "configmaps" {
		if len(parts) > 1 {
			resource += " " + parts[1]
		} else if _, name, found := strings.Cut(r.URL.Query().Get("fieldSelector"), "metadata.name="); found {
			resource += " " + name
		}
	}
	return verb + " " + resource
}

// answer is how the API server has answered a request, and how long its body was.
type answer struct {
	request
	Status int
	Bytes  int
}

// moment is where in a request a fault strikes.
type moment string

const (
	before  moment = "before it is sent"         // the API server never sees the request
	after   moment = "after the server's answer" // of which the controller never sees a byte
	within  moment = "within the answer"         // the controller has seen Byte bytes of its body
	instead moment = "instead of the answer"     // the API server never sees the request, the controller sees Answer
)

// fault strikes one request once.
type fault struct {
	request
	Moment moment
	Byte   int
	Kill   bool // the controller dies there; else its connection is cut
	Answer *made
}

func (f fault) String() string {
	does := "cut"
	switch {
	case f.Answer != nil:
		does = fmt.Sprintf("answered with %d, Retry-After %q", f.Answer.Code, f.Answer.RetryAfter)
	case f.Kill:
		does = "crash"
	}
	where := string(f.Moment)
	if f.Moment == within {
		where = fmt.Sprintf("after %d bytes of the answer", f.Byte)
	}
	return fmt.Sprintf("%s: %s %s", f.request, does, where)
}

// made is an answer of the proxy's own.
type made struct {
	Code       int
	RetryAfter string // empty: without
}

func (m made) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if m.RetryAfter != "" {
		w.Header().Set("Retry-After", m.RetryAfter)
	}
	w.WriteHeader(m.Code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the campaign says so","reason":%q,"code":%d}`, http.StatusText(m.Code), m.Code)
}

// proxy stands between a controller and the API server: it counts requests and strikes one of them.
type proxy struct {
	server string // its address
	web    *http.Server
	target *url.URL
	ahead  *http.Transport

	mutex   sync.Mutex
	counts  map[string]int
	answers []*answer
	planned *fault
	struck  time.Time // zero: not yet
	path    string    // method and path of the request that was struck
	next    time.Time // when the next one of the same path came
	kill    func()
	cuts    map[string]int // of the first request of a sort: after how many bytes of its answer it is cut
	cut     map[string]bool
}

func newProxy(cp *realcluster.ControlPlane) (*proxy, error) {
	pair, err := cp.CA.Server()
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(cp.Server)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(cp.CA.PEM)
	p := &proxy{server: "https://" + listener.Addr().String(), target: target,
		ahead: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, DisableCompression: true, MaxIdleConnsPerHost: 64}}
	p.web = &http.Server{Handler: p, ErrorLog: log.New(io.Discard, "", 0), TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}}
	go func() { _ = p.web.ServeTLS(listener, "", "") }()
	return p, nil
}

func (p *proxy) close() {
	p.web.Close()
	p.ahead.CloseIdleConnections()
}

// count begins to count anew, with a fault to come, or none. kill ends the controller and returns when it is gone.
func (p *proxy) count(f *fault, kill func()) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.counts, p.answers, p.planned, p.struck, p.path, p.next, p.kill = map[string]int{}, nil, f, time.Time{}, "", time.Time{}, kill
	p.cuts, p.cut = nil, map[string]bool{}
}

// countAndCut begins to count anew, and cuts the first stream of each of these sorts after so many bytes.
func (p *proxy) countAndCut(cuts map[string]int) {
	p.count(nil, nil)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.cuts = cuts
}

// uncut are the streams whose byte has not come yet.
func (p *proxy) uncut() (left []string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for sort := range p.cuts {
		if !p.cut[sort] {
			left = append(left, sort)
		}
	}
	return left
}

// struckAt is when the fault struck; zero: not yet.
func (p *proxy) struckAt() time.Time {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.struck
}

// again is how long after the fault the same was asked once more, if it was.
func (p *proxy) again() (time.Duration, bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.next.Sub(p.struck), !p.next.IsZero()
}

// answered are the answers since count, in the order of their requests.
func (p *proxy) answered() (all []answer) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, one := range p.answers {
		all = append(all, *one)
	}
	return all
}

// begin counts a request, and says which fault strikes it.
func (p *proxy) begin(r *http.Request) (*answer, *fault) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	path := r.Method + " " + r.URL.Path
	if !p.struck.IsZero() && path == p.path && p.next.IsZero() {
		p.next = time.Now()
	}
	sort := what(r)
	p.counts[sort]++
	made := &answer{request: request{sort, p.counts[sort]}}
	p.answers = append(p.answers, made)
	if at, found := p.cuts[sort]; found && made.N == 1 {
		return made, &fault{request: made.request, Moment: within, Byte: at}
	}
	f := p.planned
	if f == nil || !p.struck.IsZero() || f.request != made.request {
		return made, nil
	}
	if f.Moment != within {
		p.struck, p.path = time.Now(), path
	}
	return made, f
}

// strike carries a fault out: nothing comes back from here but for the next request.
func (p *proxy) strike(f *fault, r *http.Request) {
	p.mutex.Lock()
	if p.struck.IsZero() {
		p.struck, p.path = time.Now(), r.Method+" "+r.URL.Path
	}
	p.cut[f.What] = true
	kill := p.kill
	p.mutex.Unlock()
	if f.Kill {
		if f.Moment == within {
			time.Sleep(2 * time.Millisecond) // for the controller to act on the bytes that it has been sent
		}
		kill()
	}
	panic(http.ErrAbortHandler)
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	made, f := p.begin(r)
	ctx := r.Context()
	if made.writes() {
		ctx = context.WithoutCancel(ctx) // the API server does what it was asked, and says so in its audit log, whoever is left to hear of it
	}
	if f != nil && f.Moment == before {
		p.strike(f, r)
	}
	if f != nil && f.Moment == instead {
		f.Answer.write(w)
		return
	}
	out := r.Clone(ctx)
	out.URL.Scheme, out.URL.Host, out.Host, out.RequestURI = p.target.Scheme, p.target.Host, p.target.Host, ""
	got, err := p.ahead.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer got.Body.Close()
	p.mutex.Lock()
	made.Status = got.StatusCode
	p.mutex.Unlock()
	if f != nil && f.Moment == after {
		_, _ = io.Copy(io.Discard, got.Body)
		p.strike(f, r)
	}
	for name, values := range got.Header {
		if !slices.Contains([]string{"Connection", "Keep-Alive"}, name) {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(got.StatusCode)
	p.pass(w, got.Body, made, f, r)
}

// pass hands on what comes as it comes, up to the byte at which a fault strikes.
func (p *proxy) pass(w http.ResponseWriter, body io.Reader, made *answer, f *fault, r *http.Request) {
	sent, buffer, flush := 0, make([]byte, 32*1024), http.NewResponseController(w)
	if f != nil && f.Byte == 0 {
		_ = flush.Flush()
		p.strike(f, r)
	}
	for {
		n, err := body.Read(buffer)
		strikes := f != nil && sent+n >= f.Byte
		if strikes {
			n = f.Byte - sent
		}
		if _, problem := w.Write(buffer[:n]); problem != nil {
			panic(http.ErrAbortHandler)
		}
		_ = flush.Flush()
		sent += n
		p.mutex.Lock()
		made.Bytes = sent
		p.mutex.Unlock()
		if strikes {
			p.strike(f, r)
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}
