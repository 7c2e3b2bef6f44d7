// Package h2 carries watches over HTTP/2. Each watch is a response. END_STREAM is its clean
// end; RST_STREAM and the end of the connection mean that it was cut. HTTP/2 is negotiated by
// ALPN over TLS, and used with prior knowledge in clear text (rfc9113#section-3).
//
// Start with [Server] to serve watches and with [Client] to dial them. Both use HTTP/2 of
// net/http, so the server works behind any middleware. Call [Configure] for the http.Server:
// only there can stalled connections be kept from blocking their handlers.
package h2
