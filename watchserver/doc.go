// Package watchserver turns a Source into a URL: a GET lists it, a GET with ?watch=1 follows it, over HTTP/1.1, HTTP/2 or WebSocket,
// in the framing that the client accepts.
//
// The type to start with is [Server], whose zero value but for Source is ready:
//
//	http.Handle("/flags", &watchserver.Server{Source: flags})
//
// The protocol is Kubernetes' list-watch; docs/protocol.md says it rule by rule. A stream never just stops: it ends cleanly when its time
// is up or the server drains, and otherwise with an ERROR event that says why.
//
// # Where to look
//
// A request is read in request.go, and represent.go says in which shape it wants objects. Lists are answered in list.go and body.go,
// and watch.go opens a stream. stream.go is the one loop that serves every watch on every transport; drain.go ends them all.
package watchserver
