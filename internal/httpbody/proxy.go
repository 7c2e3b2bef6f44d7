package httpbody

import (
	"io"
	"net/http"
)

// EndAtLength makes the body of r, a request that a proxy sends on, end after Content-Length bytes
// without another read. Call it in the Rewrite of a ReverseProxy with the outgoing request.
//
// http.Transport sends all bytes of a body, and then reads once more to see its end. If that read
// fails, it closes the connection. It does fail if it is late, because a server of net/http closes
// the body of a request over HTTP/1.1 when its handler begins to respond. So a response that is
// still arriving would be cut off.
func EndAtLength(r *http.Request) {
	if r.ContentLength > 0 {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(r.Body, r.ContentLength), r.Body}
	}
}
