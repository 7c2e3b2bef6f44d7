// Package transport says what a transport is: a way to carry one stream of framed events from a server to a client. Its
// subpackages chunked (HTTP/1.1), h2 (HTTP/2) and websocket hold both ends of each, side by side; this package holds the interfaces
// and what the ends share.
//
// A transport knows nothing of histories or selections. The server's half gets batches of ready frames and writes each batch once;
// the client's half returns events. Start at [Server] and [Client].
package transport

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/listwatch/listwatch/framing"
)

// A Server is the serving half of a transport. It is safe for concurrent use.
type Server interface {
	// Name is the name of the transport in logs and figures: "chunked", "h2", "websocket".
	Name() string
	// Claims reports whether r asks for this transport. Servers are asked in turn; the first that claims r serves it.
	Claims(r *http.Request) bool
	// Accept negotiates the framing and answers r with its headers, which reach the client before Accept returns; w.Header
	// holds headers that the answer is to bear. An error is a *listwatch.Error, and then nothing has been written but
	// headers that the error response should have.
	Accept(w http.ResponseWriter, r *http.Request, o Options) (*Stream, error)
}

// Options are what a stream is accepted with. The zero Options are sound.
type Options struct {
	// Framings are those on offer; nil means framing.Default().
	Framings *framing.Registry
	// WriteTimeout is how long the peer may take no byte while there is something to write, before its stream is ended.
	// Zero: 15 s; negative: no limit. A transport may notice later, at most after three times as long.
	WriteTimeout time.Duration
	// PingInterval is how often a transport that has pings sends one; the peer must answer before the next. Zero: 20 s, well
	// below the 60 s after which proxies cut idle connections; negative: no pings.
	PingInterval time.Duration
}

// Timeout returns WriteTimeout with its default.
func (o Options) WriteTimeoutOrDefault() time.Duration {
	if o.WriteTimeout == 0 {
		return DefaultWriteTimeout
	}
	return o.WriteTimeout
}

// Ping returns PingInterval with its default.
func (o Options) PingIntervalOrDefault() time.Duration {
	if o.PingInterval == 0 {
		return DefaultPingInterval
	}
	return o.PingInterval
}

// The defaults of [Options].
const (
	DefaultWriteTimeout = 15 * time.Second
	DefaultPingInterval = 20 * time.Second
)

// A Stream is a watch that a Server has accepted.
type Stream struct {
	// Sender writes it.
	Sender Sender
	// Encoder turns events into the frames that Sender takes.
	Encoder *Encoder
	// Done is closed when the peer is gone or the Sender has been closed.
	Done <-chan struct{}
	// Detached is true where the connection was taken over: the handler may return and the stream lives on. Otherwise the
	// stream ends with the handler, which must call Sender.Close before it returns; where Close(Abort) returns an error the
	// handler must panic with http.ErrAbortHandler, and it may do so after every Abort.
	Detached bool
}

// A Sender writes the frames of one stream. Send has one caller at a time; Close may be called from another goroutine.
type Sender interface {
	// Send writes frames in order, as one write where it can, and flushes them. It neither keeps nor modifies them; the slice
	// itself may be overwritten. An error means that the stream is broken: nothing more can be sent, Close(Abort) remains.
	Send(frames [][]byte) error
	// Close ends the stream and releases it. It waits at most the write time-out. Calling it again does nothing, but may
	// return the error of the first call.
	Close(end End) error
}

// An End is how a stream ends.
type End uint8

const (
	// Finished: the stream is complete: last chunk, END_STREAM, close 1000.
	Finished End = iota
	// GoingAway: complete, because the server shuts down: as Finished, but close 1001.
	GoingAway
	// Abort: cut off; the client must not take it for complete: connection closed, RST_STREAM.
	Abort
)

// A Client is the dialling half of a transport. It is safe for concurrent use, and keeps connections where that helps.
type Client interface {
	// Name is the name of the transport, as [Server.Name].
	Name() string
	// Dial opens a stream. ctx governs the whole life of it: when it ends, the stream is broken off. What the server
	// refuses is a *listwatch.Error made from its Status; a server that doesn't speak this transport is one of code
	// Unsupported; a connection that fails is one of code Unavailable.
	Dial(ctx context.Context, r *Request) (Receiver, error)
}

// A Request is what to dial.
type Request struct {
	// URL is an http or https URL, with its query; transports that have schemes of their own translate it.
	URL *url.URL
	// Header is added to the request: credentials, Last-Event-ID. Accept is set from Framings.
	Header http.Header
	// Framings are those the client understands, in order of preference; nil means JSON alone.
	Framings []framing.Framer
	// Codings are the names of the content codings to ask for, in order of preference, of those that [Codings] returns; empty:
	// none. Over WebSocket any of them asks for permessage-deflate. The server need not compress.
	Codings []string
	// Limit is how many bytes one event may have, decompressed; zero or negative: framing.DefaultLimit.
	Limit int
	// Activity, where not nil, is called whenever something has come from the server, be it a heartbeat. It must be quick.
	Activity func()
}

// A Receiver reads one stream. Receive has one caller at a time; Close may be called from another goroutine and makes a Receive
// that waits return.
type Receiver interface {
	// Receive returns the next event; its bytes belong to the caller, and are compact as [framing.Decoder] leaves them. [io.EOF] means that the stream came to a clean end: last chunk, END_STREAM, close
	// 1000 or 1001. A stream that was cut off is a *listwatch.Error: Corrupt where the bytes were no protocol, Unavailable
	// where the connection broke; it wraps [io.ErrUnexpectedEOF] where that fell within an event.
	Receive() (framing.WatchEvent, error)
	// Header returns the headers of the response.
	Header() http.Header
	// Close gives the stream up. It never blocks for long.
	Close() error
}

// A Network is how a Client reaches servers; the zero Network dials TCP and trusts the system's certificate authorities.
type Network struct {
	// Dial opens a connection; nil: TCP with keepalive.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLS configures https; nil: the defaults of crypto/tls. It is cloned, and NextProtos is set by the transport.
	TLS *tls.Config
}

// EpochHeader is the response header that bears the Epoch of a listwatch.Description: versions of another epoch mean nothing here.
const EpochHeader = "Listwatch-Epoch"
