// Package watchserver serves a Source over HTTP. A GET lists the collection, and a GET with
// ?watch=1 watches it, over HTTP/1.1, HTTP/2 or WebSocket, in a framing that the client
// accepts.
//
// Start with [Server], which needs only a Source:
//
//	http.Handle("/flags", &watchserver.Server{Source: flags})
//
// The protocol is the list-watch of Kubernetes; docs/protocol.md specifies it rule by rule.
// A watch always ends explicitly: cleanly when its time is up or the server drains, and
// otherwise with an ERROR event that gives the reason.
//
// # Source files
//
//   - server.go: the configuration, and the entry point, which calls the gate of
//     internal/apihttp. limits.go, access.go, endpoint.go, sharedcompression.go: the other types
//     that a program configures. endpoint.go also decides until when a user may watch.
//   - request.go reads the parameters with internal/rest. list.go answers a list, and
//     watch.go opens a watch. union.go joins collections.
//   - stream.go: a stream, and what it does in a step, for all transports. output.go encodes and
//     writes, deadlines.go and conflation.go decide when. driver.go takes the steps, and ending.go
//     ends the stream. poller.go adapts Watchers that are not Pollers.
//   - watches.go: the open watches, and their limits. operate.go lists and ends them.
//   - trace.go: the hooks.
package watchserver
