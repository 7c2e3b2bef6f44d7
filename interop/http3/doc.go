// Package http3 runs our handlers and our client over HTTP/3, with the server and the client of
// quic-go. The toolkit has no HTTP/3 of its own. This module shows that nothing in a handler must
// change, and what it costs:
//
//	GOWORK=off go test -run xxx -bench . -benchtime 1x -timeout 1h .
//
// It is a module of its own, in no workspace, so that no other module depends on quic-go.
package http3
