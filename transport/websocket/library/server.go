package library

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/httpheader"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/internal/connio"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

// A Server serves watches over WebSocket. The zero value is ready to use. It is safe for concurrent
// use.
type Server[L Library] struct{}

// Name returns "websocket".
func (*Server[L]) Name() string { return "websocket" }

// Claims reports whether r requests an upgrade to WebSocket, valid or not.
func (*Server[L]) Claims(r *http.Request) bool { return httpheader.RequestsWebSocket(r) }

// messages is the envelope for libraries, which make the frames themselves.
var messages = &transport.Envelope{Messages: true}

// Accept upgrades the connection. Like Accept of package websocket, it negotiates the framing and
// limits the messages of the client. The client must accept each message within the write timeout.
func (*Server[L]) Accept(w http.ResponseWriter, r *http.Request, o transport.Options) (*transport.Stream, error) {
	if err := wswatch.CheckRequest(w, r, o.AllowOrigins); err != nil {
		return nil, err
	}
	if _, ok := w.(http.Hijacker); !ok {
		return nil, wswatch.ErrNoHijack(nil)
	}
	subprotocol, encoder, err := wswatch.Negotiate(w, r, o, messages)
	if err != nil {
		return nil, err
	}
	h := &hijacker{ResponseWriter: w, header: wswatch.WithoutHandshake(w.Header())}
	var library L
	c, err := library.Upgrade(h, r, subprotocol, encoder.Framer.(framing.MessageFramer).Binary())
	if err != nil {
		return nil, &listwatch.Error{Code: listwatch.Unavailable, Op: "upgrade to WebSocket", Err: err}
	}
	out := &stream{network: h.conn, library: c, timeout: o.WriteTimeoutOrDefault()}
	out.Init(out, out.timeout, transport.Encoder{})
	interval := o.PingIntervalOrDefault()
	out.pings = wswatch.StartPings(interval, func() bool { return out.ping(interval) })
	return &transport.Stream{
		Sender:   out,
		Encoder:  encoder,
		OnDone:   out.OnDone,
		Serve:    out.serve,
		Detached: o.Detach,
	}, nil
}

// closeWait is the time that a client has to answer a close frame, or to read it.
const closeWait = 5 * time.Second

// A stream is a watch being served. This package starts no goroutine for it: serve runs on the
// goroutine of its caller.
type stream struct {
	transport.Conn
	// Immutable after construction.
	network net.Conn // below the library
	library ServerConn
	timeout time.Duration
	pings   *time.Timer

	closing sync.WaitGroup // End writes a close frame
}

// WriteFrames implements [transport.Link].
func (s *stream) WriteFrames(frames [][]byte) error {
	for _, f := range frames {
		if err := s.library.Write(f, s.timeout); err != nil {
			return err
		}
	}
	return nil
}

// Interrupt implements [transport.Link].
func (s *stream) Interrupt() error {
	connio.Cut(s.network)
	return nil
}

// End implements [transport.Link]. It does not wait for the client: serve waits for the answer to
// the close frame and closes the connection.
func (s *stream) End(end transport.End, _ []byte) error {
	code := wswatch.CloseNormal
	switch end {
	case transport.Abort:
		return s.Interrupt()
	case transport.GoingAway:
		code = wswatch.CloseGoingAway
	}
	s.closing.Go(func() {
		if s.library.WriteClose(code, "", s.timeout) != nil {
			connio.Cut(s.network)
		}
		_ = s.network.SetReadDeadline(time.Now().Add(closeWait))
	})
	return nil
}

// serve reads until the connection ends. It ignores messages.
func (s *stream) serve() {
	err := s.discardMessages()
	// From now on Close must have no effect, because it could cut the connection before the client
	// has received the close frame.
	isFirst := s.Disconnect()
	s.pings.Stop()
	if !isFirst {
		s.awaitClose()
	}
	if v, ok := errors.AsType[*wswatch.Violation](err); ok {
		_ = s.library.WriteClose(v.Code, v.Reason, closeWait)
	}
	if err != io.EOF && isFirst {
		connio.Linger(s.network)
	}
	_ = s.network.Close()
	s.library.Close()
}

// awaitClose waits until the close frame of a close in progress was written. The client has
// closeWait to read it and what precedes it.
func (s *stream) awaitClose() {
	cut := time.AfterFunc(closeWait, func() { connio.Cut(s.network) })
	defer cut.Stop()
	_ = s.Wait()
	s.closing.Wait()
}

// minFrame is the size of the smallest frame of a client: two bytes and the mask.
const minFrame = 2 + 4

// discardMessages reads messages until an error occurs, and returns the error.
func (s *stream) discardMessages() error {
	var inbound wswatch.Inbound
	for {
		message, err := s.library.Next()
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, message)
		if err == nil {
			err = inbound.Add(n + minFrame)
		}
		if err != nil {
			return err
		}
	}
}

// ping sends a ping. If the client does not answer, it ends the stream and returns false.
func (s *stream) ping(interval time.Duration) bool {
	isAlive := s.library.Ping(interval)
	if !isAlive {
		_ = s.Close(transport.Abort)
	}
	return isAlive
}
