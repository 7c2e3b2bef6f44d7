// Package http3 runs our handlers and our client over HTTP/3, with the server and the client of
// quic-go. The toolkit has no HTTP/3 of its own. This package shows that nothing in a handler must
// change, and what it costs:
//
//	go test -run xxx -bench . -benchtime 1x -timeout 1h .
package http3
