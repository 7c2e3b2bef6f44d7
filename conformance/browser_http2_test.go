//go:build unix

package conformance_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	_ "embed"
	"encoding/base64"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/browsertest"
	"github.com/listwatch/listwatch/internal/testhttp"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
)

//go:embed testdata/sockets.html
var socketsPage []byte

// browserSockets is the number of WebSockets that testdata/sockets.html opens.
const browserSockets = 100

// A socketsReport is the report of testdata/sockets.html about all of its WebSockets.
type socketsReport struct {
	Stage  string
	Events map[string]int // the number of received events for each object name
	Closes map[string]int // the number of closed sockets for each close code, such as "1001 clean"
}

// The page is loaded over HTTP/2, so the browser uses the same connection for its WebSockets if the
// server permits that.
func TestBrowserHas100WebSocketsOnOneConnection(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	browsertest.Path(t)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	things := newCollection(t)
	ws := &watchserver.Server{Source: things}
	var mu sync.Mutex
	requests := map[[2]string]int{} // request counts by protocol and client address
	reports := make(chan socketsReport, 3)
	mux := newPageMux(t, socketsPage, func(got socketsReport) { reports <- got })
	mux.HandleFunc("GET /things", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		requests[[2]string{r.Proto, r.RemoteAddr}]++
		mu.Unlock()
		ws.ServeHTTP(w, r)
	})
	server := testhttp.Start(t, mux, testhttp.Options{
		TLS: true, Sockets: true, Configure: func(srv *http.Server) {
			h2.Configure(srv,
				h2.Config{ExtendedConnect: true})
		},
	})
	browsertest.Open(ctx, t, server.URL("/page"), "--ignore-certificate-errors-spki-list="+keyHash(t, server))

	await := func(stage string) socketsReport {
		t.Helper()
		select {
		case r := <-reports:
			if r.Stage != stage {
				t.Fatalf("got stage %q, want %q: %+v", r.Stage, stage, r)
			}
			return r
		case <-ctx.Done():
			t.Fatalf("the page did not report stage %q", stage)
		}
		return socketsReport{}
	}
	await("open")
	mu.Lock()
	for r, n := range requests {
		if r[0] != "HTTP/2.0" || n != browserSockets {
			t.Errorf("%d WebSockets came from %s over %s, want all %d on one connection over HTTP/2",
				n, r[1], r[0], browserSockets)
		}
	}
	mu.Unlock()
	if err := newWriter("writer", 0, things, newWriteLog()).put(ctx, listwatch.Key{Name: "first"},
		nil, objectSize); err != nil {
		t.Fatal(err)
	}
	if r := await("event"); r.Events["first"] != browserSockets {
		t.Errorf("got events %v, want one on each of %d WebSockets", r.Events, browserSockets)
	}
	if err := ws.Drain(ctx); err != nil {
		t.Error(err)
	}
	if r := await("closed"); r.Closes["1001 clean"] != browserSockets {
		t.Errorf("got closes %v, want code 1001 on each of %d WebSockets", r.Closes, browserSockets)
	}
}

// keyHash returns the hash of the server's public key. Chromium trusts a key whose hash the flag
// --ignore-certificate-errors-spki-list contains.
func keyHash(t *testing.T, s *testhttp.Server) string {
	t.Helper()
	u, err := url.Parse(s.URL("/"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := tls.Dial("tcp", u.Host, s.ClientTLS)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sum := sha256.Sum256(conn.ConnectionState().PeerCertificates[0].RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}
