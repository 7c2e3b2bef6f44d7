// Package h2 carries watches over HTTP/2. Each watch is a response. END_STREAM is its clean
// end. After RST_STREAM, or if the connection ends, the stream is incomplete. HTTP/2 is
// negotiated by ALPN over TLS, and used with prior knowledge in clear text
// (rfc9113#section-3).
//
// Start with [Server] to serve watches and with [Client] to dial them. Both use the HTTP/2
// implementation of net/http, so the server works behind any middleware. Call [Configure] for
// the http.Server, because only its fields can limit the time for which a stalled connection
// blocks its handlers.
package h2
