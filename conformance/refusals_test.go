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
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
)

// A cell that can't work says so: a client gets an error that tells it to ask for something else, and never a stream, silence, or an
// error that it would retry. It holds for a port that speaks HTTP/1.1 and HTTP/2 but serves one transport, and for one that speaks
// nothing else.
func TestEveryIllegalCellIsRefused(t *testing.T) {
	things := newThings(t)
	for _, port := range []string{"shared", "own"} {
		sites := make(map[siteKey]*site)
		for _, c := range chosen(cellsThat(cell.refused)) {
			key := siteKey{c.server.name, c.tls}
			if sites[key] == nil {
				sites[key] = openSite(t, things, c.server, c.tls, protocolsOf(c.server, port))
			}
			t.Run(c.String()+"/port="+port, func(t *testing.T) { testRefusal(t, c, sites[key], port) })
		}
	}
}

func newThings(t *testing.T) *store.Collection {
	t.Helper()
	things, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	return things
}

func protocolsOf(end serverEnd, port string) *http.Protocols {
	if port == "shared" {
		return nil
	}
	p := new(http.Protocols)
	p.SetHTTP1(end.Name() != "h2")
	p.SetHTTP2(end.Name() == "h2")
	p.SetUnencryptedHTTP2(end.Name() == "h2")
	return p
}

// refusals are the statuses that say "not this way": RFC 9110, sections 15.5.7, 15.5.22 and 15.6.6.
var refusals = []int{http.StatusNotAcceptable, http.StatusUpgradeRequired, http.StatusHTTPVersionNotSupported}

func testRefusal(t *testing.T, c cell, s *site, port string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := c.client.over(transport.Network{TLS: s.tls})
	if c, ok := client.(interface{ CloseIdleConnections() }); ok {
		defer c.CloseIdleConnections()
	}
	u := s.url
	u.RawQuery = "watch=1"
	r := &transport.Request{URL: &u, Header: make(http.Header), Framings: []framing.Framer{c.framing}}
	c.ask(r)
	receiver, err := client.Dial(ctx, r)
	if err == nil {
		receiver.Close()
		t.Fatal("got a stream")
	}
	switch e := listwatch.AsError(err); {
	case port == "own" && c.server.Name() == "h2" && e.Code == listwatch.Unavailable:
		// net/http, where it serves nothing but HTTP/2, hangs up on a request of HTTP/1 without a word: nobody can tell why.
	case e.Code != listwatch.Unsupported:
		t.Errorf("got %v, want code %v", err, listwatch.Unsupported)
	case port == "shared" && c.askable() && !slices.Contains(refusals, e.Status):
		t.Errorf("got status %d with %v, want one of %v", e.Status, err, refusals)
	}
	if c.sameTransport() {
		// Ours doesn't even ask. Others would.
		if status := upgradeFor(ctx, t, s, c.framing.MediaType()); status != http.StatusNotAcceptable {
			t.Errorf("an upgrade that accepts %s alone: got status %d, want 406", c.framing.MediaType(), status)
		}
	}
}

// upgradeFor asks for a WebSocket with a framing by hand, and returns the status of the answer.
func upgradeFor(ctx context.Context, t *testing.T, s *site, mediaType string) int {
	t.Helper()
	conn, err := dialSite(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	fmt.Fprintf(conn, "GET %s?watch=1 HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAccept: %s\r\n\r\n", s.url.Path, s.url.Host, mediaType)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Errorf("the body of the refusal: %v", err)
	}
	return resp.StatusCode
}

func dialSite(ctx context.Context, s *site) (net.Conn, error) {
	if s.tls == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", s.url.Host)
	}
	return (&tls.Dialer{Config: s.tls}).DialContext(ctx, "tcp", s.url.Host)
}
