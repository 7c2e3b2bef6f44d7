// Package chunked carries streams over HTTP/1.1: one response of chunked coding for each (RFC 9112, section 7.1). The last chunk
// is the clean end; a connection that ends without it was cut.
//
// [Server] has two paths. The lean one takes the connection over: chunks that are built once are shared by all watchers of an event,
// and a stream costs one small goroutine. The standard one works behind any middleware and for HTTP/1.0. A client can't tell them
// apart. On the standard path over TLS, cutting a stalled client off takes up to 5 s more than the write time-out, while crypto/tls tries
// to say goodbye. [Client] is the other end.
package chunked
