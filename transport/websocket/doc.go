// Package websocket carries watches over WebSocket (RFC 6455). Each event is one message: a
// text message if the framing is JSON, and a binary message if the framing is binary.
//
// Start with [Server] to serve watches and with [Client] to dial them. Both use one of two
// libraries, selected by [Backend]. The peer cannot observe which one: this package itself
// performs the handshake, validates the incoming frames, and handles timeouts and the end of a
// connection, because the libraries do that differently or not at all.
//
//	handshake.go    the checks of a request, and hijacking the connection
//	subprotocol.go  framings and bearer tokens in Sec-WebSocket-Protocol
//	extension.go    the negotiation of permessage-deflate
//	conn.go         the connection below a library
//	write.go        its writes: batches and the write timeout
//	validator.go    the rules for incoming frames
//	frame.go        encoding of frames, close codes
//	server.go       accepting a watch
//	stream.go       serving a watch
//	client.go       the handshake of a client
//	receiver.go     reading a watch
//	gorilla.go      the two libraries
//	nhooyr.go
package websocket
