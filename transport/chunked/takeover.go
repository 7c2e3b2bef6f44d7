package chunked

import (
	"bytes"
	"net"
	"net/http"
	"time"

	"github.com/listwatch/listwatch/transport"
)

// canTakeOver reports whether the answer to r can be written by hand: an HTTP/1.1 client that has sent all it will send.
func canTakeOver(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.ProtoAtLeast(1, 1) && r.Method == http.MethodGet &&
		r.ContentLength == 0 && len(r.TransferEncoding) == 0 && r.Header.Get("Expect") == ""
}

// takeOver answers on conn with status 200 and header, and returns the stream. Where that can't be written the stream is broken from
// the start.
func takeOver(conn net.Conn, header http.Header, encoder *transport.Encoder, timeout time.Duration) *transport.Stream {
	tune(conn)
	s := newStream(conn, timeout)
	if s.Send([][]byte{head(header)}) == nil {
		go s.readLoop()
	}
	return &transport.Stream{Sender: s, Encoder: encoder, Done: s.done, Detached: true}
}

// framingHeaders say how the response is framed, which is not for the caller to choose.
var framingHeaders = map[string]bool{
	"Connection": true, "Content-Length": true, "Keep-Alive": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// head returns the status line and the headers. Names that are no tokens are left out, and line breaks in values become spaces, as
// net/http does it.
func head(h http.Header) []byte {
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 200 OK\r\n")
	_ = h.WriteSubset(&b, framingHeaders) // a Buffer takes everything
	if _, ok := h["Date"]; !ok {
		b.WriteString("Date: " + time.Now().UTC().Format(http.TimeFormat) + "\r\n")
	}
	b.WriteString("Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
	return b.Bytes()
}

// tune makes the kernel hold less for a peer that doesn't read, and notice one that is gone.
func tune(conn net.Conn) {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = t.NetConn()
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	// All of this is to the best of the system's ability: the stream works without.
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 20 * time.Second, Interval: 10 * time.Second, Count: 4})
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(limitUnsent)
	}
}
