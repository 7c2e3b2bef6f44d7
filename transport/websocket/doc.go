// Package websocket carries watches over WebSocket (RFC 6455). Each event is one message: a
// text message if the framing is JSON, and a binary message if the framing is binary.
//
// Start with [Server] to serve watches and with [Client] to dial them. The packages gorilla and
// nhooyr are alternatives for programs that already depend on one of these libraries.
//
//	server.go     accepting a watch
//	upgrade.go    taking over the connection, and the response to a handshake
//	stream.go     serving a watch
//	reader.go     reading frames
//	frame.go      writing frames
//	extension.go  the negotiation of permessage-deflate
//	deflate.go    compressed messages
//	client.go     the handshake of a client
//	clientconn.go reading a watch
//	bearer.go     bearer tokens of browsers
package websocket
