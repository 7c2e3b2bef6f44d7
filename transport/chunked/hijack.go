package chunked

import (
	"bytes"
	"net"
	"net/http"
	"reflect"
	"time"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

// canHijack reports whether the connection of r can be hijacked. It can if w belongs to net/http
// itself, and r is a GET over HTTP/1.1 without a body. A writer of middleware is not hijacked, even
// if it is an http.Hijacker, because the middleware must see the bytes that are written.
func canHijack(w http.ResponseWriter, r *http.Request) bool {
	if t := reflect.TypeOf(w); t.Kind() != reflect.Pointer || t.Elem().PkgPath() != "net/http" {
		return false
	}
	return r.ProtoMajor == 1 && r.ProtoAtLeast(1, 1) && r.Method == http.MethodGet &&
		r.ContentLength == 0 && len(r.TransferEncoding) == 0 && r.Header.Get("Expect") == ""
}

// startStream writes status 200 and the headers to conn and returns the stream.
func startStream(conn net.Conn, header http.Header, encoder transport.Encoder, o transport.Options) *transport.Stream {
	connio.TuneTCP(conn)
	s := newStream(conn, o.WriteTimeoutOrDefault(), encoder)
	s.Open(responseHeader(header))
	return &transport.Stream{
		Sender: s, Encoder: encoder, OnDone: s.OnDone, Serve: s.serve, Detached: o.Detach, Segments: o.Segments,
	}
}

// connectionHeaders are the headers that describe the connection and the transfer coding.
// This package sets them itself and ignores the values of the caller.
var connectionHeaders = map[string]bool{
	"Connection": true, "Content-Length": true, "Keep-Alive": true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// responseHeader returns the status line and the headers. As in net/http, invalid names are
// omitted, and line breaks in values become spaces.
func responseHeader(h http.Header) []byte {
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 200 OK\r\n")
	_ = h.WriteSubset(&b, connectionHeaders) // a bytes.Buffer returns no error
	if _, ok := h["Date"]; !ok {
		b.WriteString("Date: " + time.Now().UTC().Format(http.TimeFormat) + "\r\n")
	}
	b.WriteString("Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
	return b.Bytes()
}
