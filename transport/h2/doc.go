// Package h2 carries streams over HTTP/2, one response for each, by ALPN over TLS and with prior knowledge in clear text (RFC
// 9113, section 3). END_STREAM is the clean end; RST_STREAM and the loss of the connection are cuts.
//
// Both ends are net/http's, so [Server] works behind any middleware. Call [Configure] on the http.Server: what keeps a stalled
// connection from holding its handlers can only be set there.
package h2
