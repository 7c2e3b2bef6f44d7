// Package websocket carries a watch over WebSocket (RFC 6455): one event, one message; text for JSON, binary for binary framings.
//
// [Server] is the serving end and [Client] the dialling one. Either speaks through one of two libraries, its [Backend]; the peer
// can't tell which. What the libraries do differently, or not at all, is done here, before and beneath them: the handshake, the
// checks of what comes in, time-outs and the end of a connection.
//
//	handshake.go    what a request must be like, and the connection taken over
//	subprotocol.go  names of framings and bearer tokens in Sec-WebSocket-Protocol
//	conn.go         the connection beneath a library: one writer at a time
//	write.go        a deadline for progress, few writes
//	gate.go         the rules for incoming frames
//	frame.go        frames as bytes, close codes
//	stream.go       a watch being served
//	client.go       the handshake as a client
//	replay.go       how a library gets a connection that is open already
//	receiver.go     a watch being read
//	gorilla.go      the two libraries
//	nhooyr.go
package websocket
