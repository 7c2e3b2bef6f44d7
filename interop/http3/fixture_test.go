package http3

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/testhttp"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
)

// KeepAlivePeriod is less than the 30 s after which QUIC closes a silent connection by default.
var quicConfig = &quic.Config{KeepAlivePeriod: 20 * time.Second, MaxIdleTimeout: time.Minute, MaxIncomingStreams: 1000}

// A server serves a collection in memory over HTTP/3, and on another port over HTTP/2.
type server struct {
	watches *watchserver.Server
	things  *store.Collection
	db      *memory.DB
	tcp     *testhttp.Server

	tls  *tls.Config
	http *http3.Server
	addr *net.UDPAddr
	conn net.PacketConn
}

func start(t testing.TB, configure func(*watchserver.Server)) *server {
	t.Helper()
	db := memory.Open(memory.Options{History: listwatch.Retention{Age: -1, Bytes: -1}})
	things, err := db.Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{db: db, things: things, watches: &watchserver.Server{Source: things}}
	if configure != nil {
		configure(s.watches)
	}
	s.tcp = testhttp.Start(t, s.watches, testhttp.Options{
		TLS: true, Sockets: true,
		ConfigureTLS: func(c *tls.Config) { s.tls = c.Clone() },
		Configure:    func(hs *http.Server) { h2.Configure(hs, h2.Config{}) },
	})
	s.listen(t)
	t.Cleanup(s.kill)
	return s
}

// listen starts the server of quic-go, at the same address as before.
func (s *server) listen(t testing.TB) {
	t.Helper()
	address := "127.0.0.1:0"
	if s.addr != nil {
		address = s.addr.String()
	}
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp4", address)
	if err != nil {
		t.Fatal(err)
	}
	s.conn, s.addr = conn, conn.LocalAddr().(*net.UDPAddr)
	s.http = &http3.Server{Handler: s.watches, TLSConfig: http3.ConfigureTLSConfig(s.tls), QUICConfig: quicConfig}
	go s.http.Serve(conn) // ends with kill
}

// kill ends all connections at once.
func (s *server) kill() {
	s.http.Close()
	s.conn.Close()
}

func (s *server) url(query string) string { return "https://" + s.addr.String() + "/things" + query }

// transport returns a RoundTripper over HTTP/3.
func (s *server) transport(t testing.TB) *http3.Transport {
	tr := &http3.Transport{TLSClientConfig: s.tcp.ClientTLS.Clone(), QUICConfig: quicConfig, DisableCompression: true}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// remote returns our client over HTTP/3.
func (s *server) remote(t testing.TB) *client.Remote {
	return &client.Remote{URL: s.url(""), HTTPClient: &http.Client{Transport: s.transport(t)}}
}

// overHTTP2 returns our client over HTTP/2.
func (s *server) overHTTP2(t testing.TB) *client.Remote {
	r := &client.Remote{URL: s.tcp.URL("/things"), Network: transport.Network{TLS: s.tcp.ClientTLS}}
	t.Cleanup(func() { r.Close() })
	return r
}

// put creates or replaces the thing called name.
func (s *server) put(t testing.TB, name string, n int) listwatch.Version {
	t.Helper()
	return s.putObject(t, name, fmt.Appendf(nil, `{"metadata":{"name":%q},"n":%d}`, name, n))
}

func (s *server) putObject(t testing.TB, name string, data []byte) listwatch.Version {
	t.Helper()
	return testkit.Put(t, s.things, data).Version
}

// read returns the next n events as short texts.
func read(t testing.TB, w listwatch.Watcher, n int) (events []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range n {
		one := make([]listwatch.Event, 1)
		if _, err := w.Next(ctx, one); err != nil {
			t.Fatalf("after %q: %v", events, err)
		}
		events = append(events, fmt.Sprint(one[0].Type, " ", one[0].Object.Key.Name))
	}
	return events
}

// watch returns the query of a watch of the changes from now on.
func (s *server) watch() string { return fmt.Sprint("?watch=1&resourceVersion=", s.db.Version()) }

// get sends a request over HTTP/3 and returns the response, whose body the test closes.
func (s *server) get(t testing.TB, tr http.RoundTripper, query string) *http.Response {
	t.Helper()
	return testkit.Do(t, tr, http.MethodGet, s.url(query), "")
}

func readAll(r io.Reader) string {
	text, err := io.ReadAll(r)
	if err != nil {
		return string(text) + "\n" + err.Error()
	}
	return string(text)
}
