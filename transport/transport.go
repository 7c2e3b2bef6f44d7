// Package transport defines transports, which carry streams of framed events from a server to a
// client. Its subpackages chunked (HTTP/1.1), h2 (HTTP/2) and websocket each have a server and a
// client. This package has the interfaces, and the code that both ends share.
//
// A transport does not know histories or selections. The server side writes batches of encoded
// events, and the client side returns decoded events. Start with [Server] and [Client].
//
// # Writing a transport
//
// A transport outside of this module implements Server and Client with the exported names of this
// package:
//
//   - Accept calls [Negotiate], and then [OpenResponse] for a stream over an
//     http.ResponseWriter. A transport that writes to a connection implements [Link] and
//     embeds a [Conn], which is its [Sender]. A transport whose responses are short ends a
//     stream with Stream.Finish.
//   - Dial calls [DialHTTP] for a response over net/http. A client without net/http chooses
//     the framing by [Request.FramerFor], decodes with its Decoder, and returns the errors
//     of [ResponseError] and [DialError].
//
// Package examples/extending has a transport by long polling. Package transporttest tests both
// ends against each other.
package transport

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

// A Server is the server side of a transport. It must be safe for concurrent use.
type Server interface {
	// Name returns the name of the transport for logs and metrics, such as "chunked", "h2" or
	// "websocket".
	Name() string
	// Claims reports whether r requests this transport. The first Server that claims a
	// request serves it.
	Claims(r *http.Request) bool
	// Accept negotiates the framing and responds to r. It sends the headers, including
	// headers that the caller has set in w, before it returns. An error is a
	// *listwatch.Error. After an error, the response has not been started, and w may
	// contain headers for the error response.
	Accept(w http.ResponseWriter, r *http.Request, o Options) (*Stream, error)
}

// Options configure a stream. The zero Options are ready to use.
type Options struct {
	// Framings are the framings that the server offers. If nil, framing.Default() is used.
	Framings *framing.Registry
	// Accept are the media ranges that the client accepts. If nil, they are taken from the Accept
	// headers of the request.
	Accept []framing.MediaRange
	// AllowOrigins are the origins, in addition to the server's own, whose pages may open a
	// WebSocket. They are patterns as in [OriginAllowed]. An invalid pattern matches nothing; check
	// patterns with [CheckOrigins].
	AllowOrigins []string
	// WriteTimeout is the time after which a stream ends if its peer accepts no byte of pending
	// data. A peer that reads slowly but steadily is not disconnected. If zero, DefaultWriteTimeout
	// is used. A negative value means no limit. A transport may take up to three times as long.
	WriteTimeout time.Duration
	// PingInterval is the interval between two pings, for transports that have pings. The peer
	// must respond before the next ping. If zero, DefaultPingInterval is used. A negative value
	// disables pings.
	PingInterval time.Duration
	// Detach lets a stream on a hijacked connection continue after the handler has returned. That
	// saves the memory of the handler, but middleware then sees neither the end of the stream nor
	// its errors, and the end of the request's context does not end the stream.
	Detach bool
	// Segments permits frames that refer to the text of earlier events. Such frames are several
	// times smaller. But an attacker who can write objects into a stream, and see the length of its
	// encrypted frames, can guess secrets in other objects. See docs/protocol.md.
	Segments bool
	// InitialBlocks makes gzip compress the initial events only, in the blocks that the user of the
	// stream passes to [Encoder.BlockFrame]. Other events are part of the gzip member, but are not
	// compressed.
	InitialBlocks bool
}

// WriteTimeoutOrDefault returns WriteTimeout, or its default if it is zero.
func (o Options) WriteTimeoutOrDefault() time.Duration {
	return cmp.Or(o.WriteTimeout, DefaultWriteTimeout)
}

// PingIntervalOrDefault returns PingInterval, or its default if it is zero.
func (o Options) PingIntervalOrDefault() time.Duration {
	return cmp.Or(o.PingInterval, DefaultPingInterval)
}

// The defaults of [Options]. Many proxies close connections that are idle for 60 s, so pings are
// more frequent.
const (
	DefaultWriteTimeout = 15 * time.Second
	DefaultPingInterval = 20 * time.Second
)

// A Stream is the server's end of a watch that a [Server] has accepted.
type Stream struct {
	// Sender writes the stream.
	Sender Sender
	// Encoder encodes events for Sender.
	Encoder Encoder
	// OnDone registers f, which is called when the peer has disconnected or Sender has been closed,
	// or at once if that has already happened. f is called once, on any goroutine, and must return
	// quickly. OnDone itself must be called at most once.
	OnDone func(f func())
	// Serve, if not nil, reads what the peer sends, and returns when the stream is done. The user
	// of the stream must call it once: in the handler, which then needs no other goroutine, or on a
	// goroutine of its own if the stream is detached. It may return a few seconds after
	// Sender.Close, because it waits for the peer to acknowledge the end of the stream.
	Serve func()
	// Detached is true if the stream continues after the handler has returned, and does not end
	// with the context of the request. This is so if the stream spans several requests, or if
	// [Options].Detach was set. If Detached is false, the handler must call Sender.Close before it
	// returns. If Close(Abort) returns an error, the handler must panic with http.ErrAbortHandler.
	// It may panic after every Abort.
	Detached bool
	// Segments is true if Options.Segments is true and the client decompresses all frames of the
	// stream with one history; see [Encoder.SegmentFrame].
	Segments bool
	// Finish, if not nil, is closed by a transport that wants to complete the stream, such as a
	// long poll that has something to return. The handler then sends a last bookmark, if the client
	// allows bookmarks, and calls Sender.Close(Finished). It may first send pending events, but
	// does not wait for the end of the initial events. So the transport should close Finish only
	// after they have ended (see Progress), because a client that has not received all initial
	// events has to start again.
	Finish <-chan struct{}
	// Progress, if not nil, is called after events of the watch were passed to Send, and at the end
	// of the initial events even if none were sent. The first argument is the number of events
	// since the last call, without heartbeats and periodic bookmarks. The second argument is the
	// version from which the client can resume, or zero within the initial events. Progress is
	// called on the goroutine that calls Send and must return quickly.
	Progress func(events int, at listwatch.Version)
}

// A Sender writes the frames of one stream. Only one goroutine may call Send at a time. Any
// goroutine may call Close.
type Sender interface {
	// Send writes and flushes frames in order, in one write if possible. It may overwrite the
	// slice, but does not modify the frames. The frames must not change afterwards: in a function
	// passed to a Scheduler, Send keeps the bytes that it cannot write yet. After an error the
	// stream is broken, and only Close(Abort) is useful. The error wraps [os.ErrDeadlineExceeded]
	// if the peer accepted no byte within the write timeout.
	Send(frames [][]byte) error
	// Close ends the stream and releases its resources. It returns within the write timeout.
	// Further calls have no effect, but may return the error of the first call.
	Close(end End) error
}

// A Scheduler is a Sender whose transport serves many streams on one connection, and decides when
// each of them sends. The user of any other Sender calls Send on a goroutine of its own.
type Scheduler interface {
	Sender
	// Go runs f on another goroutine as soon as Send can make progress, or the stream is done. f
	// should call Send about once and use Go again for more, so that other streams can send in
	// between. f must not block.
	Go(f func())
	// Run runs f on the goroutine of the caller. Within f, Send behaves as in a function passed to
	// Go. It is for work that must not delay the other streams of the connection: a function passed
	// to Go starts a goroutine that calls Run. Go must not be called in between, except in f.
	Run(f func())
}

// An End determines how a server ends a stream.
type End uint8

const (
	// Finished completes the stream: a last chunk, END_STREAM, or WebSocket close code 1000.
	Finished End = iota
	// GoingAway completes the stream because the server shuts down. It is like Finished, with
	// WebSocket close code 1001.
	GoingAway
	// Abort ends the stream so that the client does not consider it complete: the connection is
	// closed, or RST_STREAM is sent.
	Abort
)

// A Client is the client side of a transport. It must be safe for concurrent use. It may keep
// connections open for later streams.
type Client interface {
	// Name returns the name of the transport; see [Server].
	Name() string
	// Dial opens a stream. The stream ends when ctx ends. If the server responds with an error,
	// Dial returns the *listwatch.Error of its Status. Otherwise the error has code Unsupported
	// if the server does not support this transport, and Unavailable if the connection failed.
	Dial(ctx context.Context, r *Request) (Receiver, error)
}

// A Receiver reads one stream. Only one goroutine may call Receive at a time. Any goroutine may
// call Close, which interrupts Receive. A Receiver may be a [framing.Positioner].
type Receiver interface {
	// Receive returns the next event. Its bytes belong to the caller, and are compact as in
	// [framing.Decoder]. The error is [io.EOF] after a clean end: a last chunk, END_STREAM, or
	// WebSocket close code 1000 or 1001. Otherwise it is a *listwatch.Error of code Corrupt if
	// the data was invalid, or Unavailable if the connection failed. It wraps
	// [io.ErrUnexpectedEOF] if the stream ended within an event.
	Receive() (framing.WatchEvent, error)
	// Header returns the headers of the response.
	Header() http.Header
	// Close ends the stream. It does not wait for the server.
	Close() error
}

// A Network configures how a Client reaches servers. The zero Network dials TCP and trusts the
// certificate authorities of the system.
type Network struct {
	// Dial opens a connection. If nil, TCP with keepalive is used.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLS configures https. If nil, the defaults of crypto/tls are used. The transport clones it
	// and sets NextProtos.
	TLS *tls.Config
	// TLSConfig returns the configuration for a new connection to an https server, so that CAs and
	// certificates can be replaced. It must be safe for concurrent use. If nil, TLS is used. Open
	// connections continue to use the configuration that they began with.
	TLSConfig func() *tls.Config
}

// EpochHeader is the response header with the epoch of the collection; see listwatch.Description.
// A client must not use a version of another epoch.
const EpochHeader = "Listwatch-Epoch"

// FieldsHeader is the response header with the canonical text of the [listwatch.Projection] by
// which the server has reduced the objects. If a client requests a projection and this header is
// missing, the objects are whole.
const FieldsHeader = "Listwatch-Fields"

// ConflateHeader is the response header of a watch that may lack superseded events, because the
// client has requested it. Its value is the interval, in seconds, such as 0.5s; see
// [listwatch.Query].
const ConflateHeader = "Listwatch-Conflate"
