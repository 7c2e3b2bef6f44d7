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
// # Where to look
//
// serve.go is the entrance, behind the gate of internal/apihttp. request.go and params.go parse a
// request, list.go answers a list, and watch.go opens a watch. stream.go declares its state;
// step.go and run.go serve it: one loop for all transports. watches.go holds the open watches, and
// operate.go lists and ends them. access.go identifies users.
package watchserver
