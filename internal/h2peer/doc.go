// Package h2peer is one end of an HTTP/2 connection that a test scripts frame by frame, with
// golang.org/x/net/http2.Framer.
//
// [Client] acts as the client of a server under test, and [Server] as the server of a
// client under test. A [Peer] acknowledges SETTINGS and PING. Otherwise it sends only the
// frames that the test writes. In particular, it never opens a flow-control window.
//
//	p := h2peer.Client(t, conn)
//	p.Must(p.Request(1, ":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/"))
//	p.ReadUntil(h2peer.IsHeaders(1))
//	p.Must(p.Framer.WriteRSTStream(1, http2.ErrCodeCancel))
package h2peer
