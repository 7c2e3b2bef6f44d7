// Package h2 carries watches over HTTP/2. Each watch is a response. END_STREAM is its clean
// end. After RST_STREAM, or if the connection ends, the stream is incomplete. HTTP/2 is
// negotiated by ALPN over TLS, and used with prior knowledge in clear text
// (rfc9113#section-3).
//
// Start with [Server] to serve watches and with [Client] to dial them. Call [Configure] for the
// http.Server: it replaces net/http's HTTP/2 with the connection loop of this package, in which a
// watch needs no goroutine and shares its writes with other watches. It also sets the timeouts that
// keep a stalled connection from blocking its handlers. The loop serves every handler and all
// middleware; docs/middleware.md shows how Kubernetes' API server uses it. Server also works with
// the HTTP/2 implementation of net/http, which Client uses.
package h2
