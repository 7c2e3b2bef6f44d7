package conformance_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
)

// An unsupported combination must fail with an error that tells the client to request something
// else. It must not open a stream, hang, or fail with an error after which the client retries. The
// test covers a port that speaks HTTP/1.1 and HTTP/2 but serves one transport, and a port that
// speaks only one protocol.
func TestUnsupportedCellsAreRefused(t *testing.T) {
	things := newCollection(t)
	for _, port := range []string{"shared", "own"} {
		servers := make(map[serverKey]*servertest.Server)
		for _, c := range selectCells(cellsWhere(cell.isRefused)) {
			key := serverKey{c.server.name, c.tls}
			if servers[key] == nil {
				servers[key] = startServer(t, things, c.server, c.tls, protocolsOf(c.server, port))
			}
			t.Run(c.String()+"/port="+port, func(t *testing.T) { testRefusal(t, c, servers[key], port) })
		}
	}
}

func newCollection(t *testing.T) *store.Collection {
	t.Helper()
	return testkit.Must(memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Thing"}))(t)
}

func protocolsOf(config serverConfig, port string) *http.Protocols {
	if port == "shared" {
		return nil
	}
	p := new(http.Protocols)
	p.SetHTTP1(config.Name() != "h2")
	p.SetHTTP2(config.Name() == "h2")
	p.SetUnencryptedHTTP2(config.Name() == "h2")
	return p
}

// refusalStatuses are the status codes that refuse a protocol or framing (RFC 9110,
// sections 15.5.7, 15.5.22 and 15.6.6).
var refusalStatuses = []int{http.StatusNotAcceptable, http.StatusUpgradeRequired, http.StatusHTTPVersionNotSupported}

func testRefusal(t *testing.T, c cell, s *servertest.Server, port string) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	client := c.client.newClient(transport.Network{TLS: s.ClientTLS})
	if c, ok := client.(interface{ CloseIdleConnections() }); ok {
		defer c.CloseIdleConnections()
	}
	r := &transport.Request{
		URL: s.WatchURL("/things", ""), Header: make(http.Header), Framings: []framing.Framer{c.framing},
	}
	c.addTo(r)
	receiver, err := client.Dial(ctx, r)
	if err == nil {
		receiver.Close()
		t.Fatal("got a stream, want a refusal")
	}
	switch e := listwatch.AsError(err); {
	case port == "own" && c.server.Name() == "h2" && e.Code == listwatch.Unavailable:
		// A net/http server that speaks only HTTP/2 closes an HTTP/1 connection without a
		// response, so the client cannot know the reason.
	case e.Code != listwatch.Unsupported:
		t.Errorf("got %v, want code %v", err, listwatch.Unsupported)
	case port == "shared" && c.canRequestFraming() && !slices.Contains(refusalStatuses, e.Status):
		t.Errorf("got status %d with %v, want one of %v", e.Status, err, refusalStatuses)
	}
	if c.transportsMatch() {
		// This module's client does not send such a request, but other clients may.
		if status := upgradeStatus(ctx, t, s, c.framing.MediaType()); status != http.StatusNotAcceptable {
			t.Errorf("upgrade with Accept: %s: got status %d, want 406", c.framing.MediaType(), status)
		}
	}
}

// upgradeStatus requests a WebSocket with the given media type in Accept, and returns the status of
// the response.
func upgradeStatus(ctx context.Context, t *testing.T, s *servertest.Server, mediaType string) int {
	t.Helper()
	conn, err := dialServer(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	u := s.WatchURL("/things", "")
	fmt.Fprintf(conn,
		"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAccept: %s\r\n\r\n", u.RequestURI(), u.Host, mediaType)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Errorf("read the body of the refusal: %v", err)
	}
	return resp.StatusCode
}

func dialServer(ctx context.Context, s *servertest.Server) (net.Conn, error) {
	host := s.WatchURL("/", "").Host
	if s.ClientTLS == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", host)
	}
	return (&tls.Dialer{Config: s.ClientTLS}).DialContext(ctx, "tcp", host)
}
