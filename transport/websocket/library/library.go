// Package library carries watches over WebSocket through a WebSocket library. The packages gorilla
// and nhooyr adapt one library each. An adapter for another library needs only exported names.
//
// An adapter is a type that implements [Library]. [Server] and [Client] with this type are the two
// ends of the transport. The protocol is the same as in package websocket, but a server with a
// library writes each message separately, takes more memory for each watch, and does not compress,
// because it would compress each message again for each watcher.
package library

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

// A Library opens WebSockets. Its zero value is used.
type Library interface {
	// Upgrade accepts the handshake r, which has already been checked. The response must have the
	// headers of w, and the subprotocol unless it is empty. ServerConn.Write writes binary messages
	// if isBinary is true, and text messages otherwise. The library must reject messages of the
	// client with more than [MaxMessage] bytes. If Upgrade returns an error, the response that it
	// has written to w is discarded.
	Upgrade(w http.ResponseWriter, r *http.Request, subprotocol string, isBinary bool) (ServerConn, error)
	// Dial opens a WebSocket. If the server has responded to the handshake, Dial returns the
	// response, even together with an error. It must not follow redirects.
	Dial(ctx context.Context, h *Handshake) (ClientConn, *http.Response, error)
}

// MaxMessage is the maximum size of a message of a client.
const MaxMessage = wswatch.MaxInbound

// A ServerConn is the server's end of a WebSocket. One goroutine reads. Write, Ping and WriteClose
// may be called at the same time.
type ServerConn interface {
	// Next returns the next message of the client. It answers pings and close frames. It returns
	// io.EOF after a close frame. After a violation of the protocol it has sent a close frame.
	Next() (message io.Reader, err error)
	// Write writes a message. The error is [os.ErrDeadlineExceeded] if that takes longer than
	// timeout. A negative timeout means no limit.
	Write(message []byte, timeout time.Duration) error
	// Ping sends a ping, and may wait for the answer for as long as timeout. It returns false if
	// the client has not answered this ping, or the previous one.
	Ping(timeout time.Duration) bool
	// WriteClose writes a close frame. It may wait for the answer for a few seconds.
	WriteClose(code int, reason string, timeout time.Duration) error
	// Close releases the resources of the library. The connection has already been closed.
	Close()
}

// A ClientConn is a client's end of a WebSocket. One goroutine reads. Any goroutine may call
// WriteClose and Close.
type ClientConn interface {
	// Next waits for the next message and passes it to read. It answers pings and close frames. The
	// error is the error of read, or the result of [Closed] if the server has sent a close frame.
	Next(read func(message io.Reader) error) (isBinary bool, err error)
	// WriteClose writes a close frame within about a second.
	WriteClose(code int, reason string)
	// Close releases the resources of the library. The connection has already been closed.
	Close()
}

// Closed returns the error for a close frame of the server.
func Closed(code int, reason string) error { return &wswatch.CloseFrame{Code: code, Reason: reason} }

// A Handshake describes a WebSocket to open.
type Handshake struct {
	// URL has the scheme http or https.
	URL *url.URL
	// Header has the headers of the request, except for the headers that a library sets.
	Header http.Header
	// Subprotocols are the subprotocols to offer.
	Subprotocols []string
	// Compression is true if the client offers permessage-deflate, without context takeover.
	Compression bool
	// Limit is the maximum number of bytes of a message.
	Limit int64
	// Transport opens the connection. If DialTLSContext is nil, an https URL needs DialContext and
	// TLSClientConfig.
	Transport *http.Transport
}
