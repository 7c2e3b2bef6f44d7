package client

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

// things returns a collection in memory with all its history.
func things(t testing.TB) *store.Collection {
	t.Helper()
	c, err := memory.Open(memory.Options{HistoryAge: -1, HistoryBytes: -1}).Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serveTLS serves c on a port of 127.0.0.1, and returns the URL and how to reach it.
func serveTLS(t testing.TB, c *store.Collection, withH2 bool) (string, transport.Network) {
	t.Helper()
	s := httptest.NewUnstartedServer(&watchserver.Server{Source: c})
	s.EnableHTTP2 = withH2
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.URL, transport.Network{TLS: &tls.Config{RootCAs: roots}}
}

func TestHTTPSIsHTTP2WhereTheServerSpeaksIt(t *testing.T) {
	for withH2, want := range map[bool]string{true: "h2", false: "chunked"} {
		c := things(t)
		url, network := serveTLS(t, c, withH2)
		opened := make(chan string, 1)
		r := &Remote{URL: url, Network: network, Trace: &Trace{Opened: func(name string, _ listwatch.Version) { opened <- name }}}
		w, err := r.Watch(t.Context(), listwatch.Query{Bookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := <-opened; got != want {
			t.Errorf("opened over %s, want %s", got, want)
		}
		if e := next(t, w, 1)[0]; e.Type != listwatch.Synced {
			t.Errorf("got %s, want the end of no initial events", spell(e))
		}
		if _, err := r.List(t.Context(), listwatch.Query{}); err != nil {
			t.Error(err)
		}
		w.Close()
		r.Close()
	}
}

// tls/bad-ca.
func TestACertificateThatIsNotTrustedIsTheCallersConcern(t *testing.T) {
	url, _ := serveTLS(t, things(t), true)
	r := &Remote{URL: url}
	defer r.Close()
	_, err := r.Watch(t.Context(), listwatch.Query{})
	if listwatch.CodeOf(err) != listwatch.Invalid || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got error %v, want %v", err, listwatch.Invalid)
	}
	if _, err := r.List(t.Context(), listwatch.Query{}); listwatch.CodeOf(err) != listwatch.Invalid {
		t.Errorf("got error %v, want %v", err, listwatch.Invalid)
	}
}

// BenchmarkWatch measures a Remote that replays 10,000 events of 1 KiB over loopback, in JSON: server and client in one process.
func BenchmarkWatch(b *testing.B) {
	const events = 10_000
	c := things(b)
	start, err := c.Create(b.Context(), []byte(`{"metadata":{"name":"start"}}`))
	if err != nil {
		b.Fatal(err)
	}
	padding := strings.Repeat("x", 800)
	for i := range events {
		if _, err := c.Create(b.Context(), fmt.Appendf(nil, `{"metadata":{"name":"thing-%d"},"padding":%q}`, i, padding)); err != nil {
			b.Fatal(err)
		}
	}
	url, network := serveTLS(b, c, true)
	plain := httptest.NewServer(&watchserver.Server{Source: c})
	defer plain.Close()
	for _, bench := range []struct {
		name   string
		remote *Remote
	}{
		{"chunked", &Remote{URL: plain.URL, Transports: []transport.Client{&chunked.Client{}}}},
		{"websocket", &Remote{URL: plain.URL, Transports: []transport.Client{&websocket.Client{}}}},
		{"h2-tls", &Remote{URL: url, Network: network, Transports: []transport.Client{&h2.Client{Network: network}}}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			defer bench.remote.Close()
			batch := make([]listwatch.Event, 64)
			read := 0
			b.ReportAllocs()
			for b.Loop() {
				w, err := bench.remote.Watch(b.Context(), from(int(start.Version)))
				if err != nil {
					b.Fatal(err)
				}
				for n := 0; n < events; {
					k, err := w.Next(b.Context(), batch)
					if err != nil {
						b.Fatal(err)
					}
					n += k
				}
				read += events
				w.Close()
			}
			b.ReportMetric(float64(read)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
