package h2

import (
	"net"
	"net/url"
	"testing"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/internal/h2peer"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/transporttest"
)

// A scriptedPeer is an h2peer.Peer that belongs to a test.
type scriptedPeer struct {
	*testing.T
	*h2peer.Peer
}

// newScriptedClient connects to server and writes settings.
func newScriptedClient(t *testing.T, server *transporttest.TestServer, settings ...http2.Setting) scriptedPeer {
	t.Helper()
	conn, err := server.Network.Dial(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return scriptedPeer{t, h2peer.Client(t, conn, settings...)}
}

// newScriptedServer accepts the next connection of l and writes settings.
func newScriptedServer(t *testing.T, l net.Listener, settings ...http2.Setting) scriptedPeer {
	t.Helper()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return scriptedPeer{t, h2peer.Server(t, conn, settings...)}
}

// requestWatch opens a stream with the request of a watch.
func (p scriptedPeer) requestWatch(stream uint32) {
	p.Helper()
	p.Must(p.Request(stream, ":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/things?watch=1"))
}

// readStreamFrame returns the next HEADERS, DATA, RST_STREAM or GOAWAY frame.
func (p scriptedPeer) readStreamFrame() http2.Frame {
	p.Helper()
	return p.ReadUntil(func(f http2.Frame) bool {
		switch f.(type) {
		case *http2.SettingsFrame, *http2.PingFrame, *http2.WindowUpdateFrame:
			return false
		}
		return true
	})
}

// readData reads until n bytes of DATA have arrived on a stream.
func (p scriptedPeer) readData(stream uint32, n int) {
	p.Helper()
	for len(p.Data[stream]) < n {
		p.Read()
	}
}

// dialScripted dials l with c and accepts the stream with a scripted server. The number of
// the stream is 1.
func dialScripted(t *testing.T, c *Client, l *memnet.Listener) (scriptedPeer, transport.Receiver) {
	t.Helper()
	accepted := make(chan scriptedPeer)
	go func() {
		p := newScriptedServer(t, l)
		p.ReadUntil(h2peer.IsHeaders(1))
		p.Must(p.Respond(1, ":status", "200", "content-type", "application/json"))
		accepted <- p
	}()
	r, err := c.Dial(t.Context(), &transport.Request{URL: &url.URL{Scheme: "http", Host: l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return <-accepted, r
}
