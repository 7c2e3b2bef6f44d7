// Package chunked carries watches over HTTP/1.1. Each watch is a response in the chunked
// transfer coding (rfc9112#section-7.1). The last chunk is the clean end. If the connection
// ends without it, the stream was interrupted.
//
// Start with [Server] to serve watches and with [Client] to dial them. The server has two
// paths, which a client cannot distinguish:
//
//   - The lean path hijacks the connection if the http.ResponseWriter is net/http's own. Each chunk
//     is built once and shared by all watchers of an event. With [transport.Options].Detach, a
//     watch continues after its handler has returned.
//   - The standard path uses the http.ResponseWriter. It works behind any middleware and for
//     HTTP/1.0. Over TLS it takes up to 5 s longer than the write timeout to disconnect a stalled
//     client, because crypto/tls tries to send a close_notify.
package chunked
