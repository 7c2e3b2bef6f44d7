// Package loop serves HTTP/2 connections for an http.Server. It replaces net/http's implementation,
// which needs a goroutine for each stream and hands each flush to another goroutine.
//
// [Server.Register] puts the loop into an http.Server. A connection has one goroutine that reads
// its frames, and a second one only while there is something to write. A request is served by a
// goroutine of its own with a complete http.ResponseWriter, until its handler returns. [Watch]
// turns a response into a stream that needs no goroutine: [Watch.Go] schedules a function that the
// connection's writer calls when the stream may send.
//
// # Where to find what
//
//   - server.go: what the loop shares with its http.Server, and the settings of connections.
//   - conn.go: a connection, its goroutines and its end. timers.go: its timeouts and pings.
//   - frames.go: the reader's dispatch, a method for each type of frame. headers.go: header
//     blocks, and requests made of them. budget.go: what a peer may cost the server.
//   - stream.go: the state of a stream, and what it sends. write.go: the order of the streams,
//     the writer, and the bytes of its next write.
//   - response.go and respond.go: the http.ResponseWriter. body.go: the body of a request.
//   - handler.go: the goroutines of handlers. watch.go: streams without a goroutine.
//   - tunnel.go: WebSockets (RFC 8441), as connections that handlers hijack.
//
// # Locks
//
// The mutex of a connection guards all of its streams. It is never held during I/O, nor while a
// handler or a function of Watch.Go runs. Header blocks are encoded under the mutex in the order in
// which they are written, because the encoder's table must change in that order.
//
// # Hostile peers
//
// Each frame that costs the server something and that an honest client seldom sends is charged to
// the connection's budget in frames.go or headers.go, by the methods in budget.go. A connection
// that has exceeded its budget ends with ENHANCE_YOUR_CALM.
package loop
