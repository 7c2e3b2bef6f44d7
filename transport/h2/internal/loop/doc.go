// Package loop serves HTTP/2 connections for an http.Server. It replaces net/http's implementation,
// which needs a goroutine for each stream and hands each flush to another goroutine.
//
// [Server.Register] puts the loop into an http.Server. A connection has one goroutine that reads
// its frames, and a second one only while there is something to write. A request is served by a
// goroutine of its own with a complete http.ResponseWriter, until its handler returns. [Watch]
// turns a response into a stream that needs no goroutine: [Watch.Go] schedules a function that the
// connection's writer calls when the stream may send.
//
// # Source files
//
// Most files have the name of a type, and hold it with its methods:
//
//   - conn.go: a connection from its start to its end. frames.go: its reader, with a method for
//     each type of frame. write.go: its writer. timers.go: pings, timeouts and the reset of stalled
//     streams. connstate.go: the reports to http.Server.ConnState. server.go: what the loop shares
//     with its http.Server.
//   - stream.go: a stream. send.go: what it sends. request.go: the frames of its request.
//     halfclosed.go: the rest of a request whose response is complete. streams.go: lists of
//     streams. sched.go: the order in which streams send, and their windows.
//   - exchange.go: a request that a handler serves. handlers.go: the limit of the handlers.
//     body.go: the body of the request. response.go, head.go: the http.ResponseWriter.
//   - watch.go: responses without a goroutine. tunnel.go: WebSockets (RFC 8441), as connections
//     that handlers hijack.
//   - pseudo.go, headers.go: header blocks of requests. encode.go: header blocks of responses.
//     output.go: the bytes of the next write.
//   - errors.go, settings.go: errors, and the limits and timeouts of a connection. budget.go,
//     late.go: the work that a peer may cause, and the frames that may still arrive from it.
//
// # Locks
//
// The mutex of a connection guards all of its streams. It is never held during I/O, nor while a
// handler, a function of Watch.Go or a hook of http.Server runs. Header blocks are encoded under
// the mutex in the order in which they are written, because the encoder's table must change in that
// order.
//
// # Hostile peers
//
// Each frame that makes the server work without using the service is charged to the connection's
// budget in frames.go or request.go, by the methods in budget.go. Honest clients send many
// WINDOW_UPDATE, PING and similar frames. These are free in proportion to the streams that the
// client has opened and to the data that the server has sent. Data that a tiny window has cut into
// tiny frames does not count. A connection that has exceeded its budget ends with
// ENHANCE_YOUR_CALM.
//
// The work for a free frame does not grow with the number of streams. In particular, a
// WINDOW_UPDATE for the connection visits only the streams that can then send, in the order in
// which they were blocked.
package loop
