package client

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/httpbody"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

func TestTransportsServeOnlyWatches(t *testing.T) {
	p := always(sends(added("a", 2)))
	r := newRemote(p)
	var dialed atomic.Int32
	r.Network.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialed.Add(1)
		return dialNothing(ctx, network, address)
	}
	if _, err := r.List(t.Context(), listwatch.Query{}); err == nil || dialed.Load() != 1 {
		t.Errorf("a list: got error %v after %d connections over Network, want one", err, dialed.Load())
	}
	wantEvents(t, testkit.Watch(t, r, watchFrom(1)), "ADDED/a@2")

	r = newRemote(p)
	lists := serveLists(r, func(int) listResponse { return listResponse{status: 200, body: listBodyOf(7)} })
	if _, err := r.List(t.Context(), listwatch.Query{}); err != nil {
		t.Errorf("a list over HTTPClient: got error %v", err)
	}
	wantEvents(t, testkit.Watch(t, r, watchFrom(1)), "ADDED/a@2")
	if len(lists.requests) != 1 || len(p.requests()) != 2 {
		t.Errorf("%d requests over HTTPClient and %d over Transports, want 1 and 2", len(lists.requests),
			len(p.requests()))
	}
}

// A recordedServer serves a collection on a socket and counts the requests of each transport.
type recordedServer struct {
	*httptest.Server
	things  *store.Collection
	watches map[string]*atomic.Int32 // number of watches, by the result of transportOf
	lists   atomic.Int32
	// If tokens holds a token, the server accepts only requests with this token.
	tokens atomic.Pointer[string]
	// If upgrades is true, the server accepts only watches over WebSocket.
	upgrades bool
}

func startRecorded(t *testing.T, name, network, address string, tls bool) *recordedServer {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	s := &recordedServer{
		things: newThings(t), upgrades: name == "websocket",
		watches: map[string]*atomic.Int32{"chunked": {}, "h2": {}, "websocket": {}},
	}
	server := &watchserver.Server{Source: s.things}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(name != "h2")
	protocols.SetHTTP2(name == "h2")
	protocols.SetUnencryptedHTTP2(name == "h2")
	s.Server = &httptest.Server{
		Listener: l, EnableHTTP2: name == "h2",
		Config: &http.Server{
			Protocols: protocols,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				token := s.tokens.Load()
				switch isWatch := r.URL.Query().Has("watch"); {
				case token != nil && r.Header.Get("Authorization") != "Bearer "+*token:
					http.Error(w, "wrong token", http.StatusUnauthorized)
					return
				case isWatch && s.upgrades && transportOf(r) != "websocket":
					http.Error(w, "only WebSocket", http.StatusNotImplemented)
					return
				case isWatch:
					s.watches[transportOf(r)].Add(1)
				default:
					s.lists.Add(1)
				}
				server.ServeHTTP(w, r)
			}),
		},
	}
	if tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(func() {
		if err := server.Drain(context.Background()); err != nil {
			t.Error(err)
		}
		s.Close()
	})
	return s
}

// newTransport returns an http.Transport for one of servertest.TransportNames.
func newTransport(name string) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(name != "h2")
	protocols.SetHTTP2(name == "h2")
	protocols.SetUnencryptedHTTP2(name == "h2")
	return &http.Transport{Protocols: protocols}
}

// checkFollows lists, watches, and watches again after all connections have been closed. All
// requests must reach s, and all watches must use the named transport.
func (s *recordedServer) checkFollows(t *testing.T, r *Remote, name string) {
	t.Helper()
	defer r.Close()
	r.Backoff.Min = -1
	if _, err := r.List(t.Context(), listwatch.Query{}); err != nil {
		t.Fatal(err)
	}
	w, err := r.Watch(t.Context(), listwatch.Query{Bookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if e := testkit.Read(t, w, 1)[0]; e.Type != listwatch.Synced {
		t.Fatalf("got %s, want SYNCED", format(e))
	}
	for i := range 2 {
		o, err := s.things.Create(t.Context(), []byte(`{"metadata":{"generateName":"a-"}}`))
		if err != nil {
			t.Fatal(err)
		}
		if e := testkit.Read(t, w, 1)[0]; e.Version != o.Version {
			t.Errorf("got %s, want version %d", format(e), o.Version)
		}
		if i == 0 {
			s.CloseClientConnections()
		}
	}
	if n := s.watches[name].Load(); n < 1 || s.lists.Load() < 1 {
		t.Errorf("the server saw %d watches over %s and %d lists, want at least one each", n, name, s.lists.Load())
	}
	for other, n := range s.watches {
		if other != name && n.Load() > 0 {
			t.Errorf("the server saw %d watches over %s, want none", n.Load(), other)
		}
	}
}

// A forwardProxy connects clients to one server, whatever host they name. It tunnels CONNECT and
// forwards other requests.
type forwardProxy struct {
	forward  http.Handler
	address  string // the address of the server
	requests atomic.Int32
}

func startProxy(t *testing.T, address string) (p *forwardProxy, proxy string) {
	p = &forwardProxy{address: address, forward: httpbody.Forward(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Host = address },
		FlushInterval: -1,
	})}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	return p, s.Listener.Addr().String()
}

func (p *forwardProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.requests.Add(1)
	if r.Method != http.MethodConnect {
		p.forward.ServeHTTP(w, r)
		return
	}
	server, err := net.Dial("tcp", p.address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer server.Close()
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { // ends when either side closes
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}

// net/http reads the environment once in a process, so only this test may use
// http.ProxyFromEnvironment, and the proxy needs a fixed name.
func TestHTTPClientUsesTheProxyOfTheEnvironment(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://proxy.test:3128")
	t.Setenv("HTTPS_PROXY", "http://proxy.test:3128")
	t.Setenv("NO_PROXY", "")
	for _, test := range []struct {
		transport string
		tls       bool
	}{{"chunked", false}, {"chunked", true}, {"h2", true}, {"websocket", false}, {"websocket", true}} {
		scheme := map[bool]string{false: "http", true: "https"}[test.tls]
		t.Run(scheme+" "+test.transport, func(t *testing.T) {
			s := startRecorded(t, test.transport, "tcp", "127.0.0.1:0", test.tls)
			p, proxy := startProxy(t, s.Listener.Addr().String())
			rt := newTransport(test.transport)
			rt.Proxy = http.ProxyFromEnvironment
			rt.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				if address != "proxy.test:3128" {
					return nil, fmt.Errorf("dialed %s, want the proxy", address)
				}
				return new(net.Dialer).DialContext(ctx, network, proxy)
			}
			if test.tls {
				rt.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
				rt.TLSClientConfig.ServerName = "example.com" // a name in httptest's certificate
				rt.TLSClientConfig.NextProtos = nil
				rt.Protocols.SetUnencryptedHTTP2(false)
			}
			s.checkFollows(t, &Remote{URL: scheme + "://things.test/things", HTTPClient: &http.Client{Transport: rt}},
				test.transport)
			if n := p.requests.Load(); n == 0 {
				t.Error("the proxy saw no request")
			}
		})
	}
}

func TestHTTPClientReachesAUnixSocket(t *testing.T) {
	for _, name := range []string{"chunked", "h2", "websocket"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "socket")
			s := startRecorded(t, name, "unix", path, false)
			rt := newTransport(name)
			rt.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", path)
			}
			s.checkFollows(t, &Remote{URL: "http://things/things", HTTPClient: &http.Client{Transport: rt}}, name)
		})
	}
}

// A tokenTransport adds credentials to a copy of each request, as oauth2 does, and wraps the body
// of each response, as otelhttp does.
type tokenTransport struct {
	token func() string
	next  http.RoundTripper
}

func (t *tokenTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+t.token())
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if rw, ok := resp.Body.(io.ReadWriteCloser); ok {
		resp.Body = struct{ io.ReadWriteCloser }{rw}
	} else {
		resp.Body = struct{ io.ReadCloser }{resp.Body}
	}
	return resp, nil
}

func TestRoundTripperAddsCredentials(t *testing.T) {
	for _, name := range []string{"chunked", "h2", "websocket"} {
		t.Run(name, func(t *testing.T) {
			s := startRecorded(t, name, "tcp", "127.0.0.1:0", false)
			token := "first"
			s.tokens.Store(&token)
			c := &http.Client{Transport: &tokenTransport{func() string { return *s.tokens.Load() }, newTransport(name)}}
			s.checkFollows(t, &Remote{URL: s.URL + "/things", HTTPClient: c}, name)

			c = &http.Client{Transport: &tokenTransport{func() string { return "wrong" }, newTransport(name)}}
			r := &Remote{URL: s.URL + "/things", HTTPClient: c}
			defer r.Close()
			if _, err := r.Watch(t.Context(), listwatch.Query{}); listwatch.CodeOf(err) != listwatch.Unauthorized {
				t.Errorf("a watch with a wrong token: got error %v, want %v", err, listwatch.Unauthorized)
			}
		})
	}
}

// The response of a watch has no end, so only its beginning can be limited.
func TestTimeoutOfHTTPClientDoesNotEndWatches(t *testing.T) {
	for _, name := range servertest.TransportNames {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startServer(t, servertest.Options{})
				rt := newTransport(name)
				rt.DialContext = s.Network.Dial
				c := &http.Client{Transport: rt, Timeout: time.Second}
				opened := 0
				r := &Remote{
					URL: s.URL("/things"), HTTPClient: c,
					Trace: &Trace{Opened: func(string, listwatch.Version) { opened++ }},
				}
				if name == "websocket" {
					r.Transports = []transport.Client{&websocket.Client{HTTPClient: c}}
				}
				defer r.Close()
				w := testkit.Watch(t, r, listwatch.Query{Bookmarks: true})
				defer w.Close()
				testkit.Read(t, w, 1)
				time.Sleep(30 * time.Second)
				s.put(t, "a", 1)
				if testkit.Read(t, w, 1); opened != 1 {
					t.Errorf("the watch needed %d requests, want 1", opened)
				}
			})
		})
	}
}

func TestErrorsOfADialAreNotChanged(t *testing.T) {
	shared := &listwatch.Error{Code: listwatch.Forbidden, Message: "no connections to this host"}
	n := transport.Network{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, shared }}
	for _, tr := range []transport.Client{
		&chunked.Client{Network: n}, &h2.Client{Network: n},
		&websocket.Client{Network: n},
	} {
		r := &Remote{URL: "http://127.0.0.1/things", Network: n, Transports: []transport.Client{tr}}
		_, listErr := r.List(t.Context(), listwatch.Query{})
		_, watchErr := r.Watch(t.Context(), watchFrom(1))
		_, getErr := r.Get(t.Context(), keyA)
		got := fmt.Sprint(listErr, "; ", watchErr, "; ", getErr)
		want := "list: forbidden: no connections to this host; dial: forbidden: no connections to this host; " +
			"get: forbidden: no connections to this host"
		if got != want {
			t.Errorf("%s: got errors %q, want %q", tr.Name(), got, want)
		}
	}
	if shared.Op != "" {
		t.Errorf("got Op %q in the shared error, want none", shared.Op)
	}
}
