// Package http3 runs our handlers and our client over HTTP/3, with the server and the client of
// quic-go. The toolkit has no HTTP/3 of its own. This package shows that our handlers need no
// changes for HTTP/3, and measures its cost:
//
//	go test -run xxx -bench . -benchtime 1x -timeout 1h .
package http3
