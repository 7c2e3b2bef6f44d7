package wswatch

import (
	"context"
	"net/http"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

// A Conn is a client's end of a WebSocket.
type Conn interface {
	// Next returns the next message, which is valid until the next call. It answers pings and the
	// server's close frame. After a close frame the error is a [*CloseFrame]. If the error is a
	// [*Violation], the receiver reports the violation to the server. Receive returns other errors
	// unchanged.
	Next() (isBinary bool, message []byte, err error)
	// WriteClose writes a close frame within about a second. Any goroutine may call it.
	WriteClose(code int, reason string)
	// Cut closes the connection at once. Any goroutine may call it.
	Cut()
}

var _ framing.Buffered = (*receiver)(nil)

// A receiver reads a watch from a Conn.
type receiver struct {
	// Immutable after construction.
	conn          Conn
	header        http.Header
	request       *Request
	agreed        framing.MessageFramer // the framing that the handshake named, or nil
	detachContext func() bool

	err error // the last error of Receive; owned by the caller of Receive

	mu       sync.Mutex
	closeErr error // guarded by mu; the reason why this end has closed the connection
}

// newReceiver returns a receiver that ends with ctx. h has the headers of the response.
func newReceiver(ctx context.Context, c Conn, h http.Header, request *Request) *receiver {
	r := &receiver{conn: c, header: h, request: request, agreed: request.agreedFraming(h)}
	r.detachContext = context.AfterFunc(ctx, func() { r.closeWith(ctx.Err()) })
	return r
}

// Header implements [transport.Receiver].
func (r *receiver) Header() http.Header { return r.header }

// Receive implements [transport.Receiver].
func (r *receiver) Receive() (framing.WatchEvent, error) {
	if r.err != nil {
		return framing.WatchEvent{}, r.err
	}
	isBinary, message, err := r.conn.Next()
	if err == nil {
		var e framing.WatchEvent
		if e, err = r.request.decode(r.agreed, isBinary, message); err == nil {
			return e, nil
		}
		if _, ok := err.(*Violation); !ok {
			r.conn.WriteClose(ClosePolicy, "") // the framing has rejected the message
		}
	}
	r.err = r.fail(err)
	r.detachContext()
	r.conn.Cut()
	return framing.WatchEvent{}, r.err
}

// Buffered implements [framing.Buffered].
func (r *receiver) Buffered() (framing.WatchEvent, bool) {
	if c, ok := r.conn.(interface{ HasMessage() bool }); !ok || r.err != nil || !c.HasMessage() {
		return framing.WatchEvent{}, false
	}
	e, err := r.Receive()
	return e, err == nil // the next call of Receive returns the error again
}

// fail returns the error for a Receive that failed with err.
func (r *receiver) fail(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closeErr != nil {
		return r.closeErr
	}
	switch err := err.(type) {
	case *CloseFrame:
		return err.receiveError()
	case *Violation:
		r.conn.WriteClose(err.Code, err.Reason)
		return &listwatch.Error{Code: listwatch.Corrupt, Op: "receive", Message: err.Reason, Err: err}
	}
	return err
}

// Close writes a close frame and closes the connection.
func (r *receiver) Close() error {
	r.detachContext()
	r.closeWith(connio.ErrReceiverClosed)
	return nil
}

// closeWith closes the connection from this end. Receive then returns err.
func (r *receiver) closeWith(err error) {
	r.mu.Lock()
	closed := r.closeErr != nil
	if !closed {
		r.closeErr = err
	}
	r.mu.Unlock()
	if !closed {
		r.conn.WriteClose(CloseNormal, "")
		r.conn.Cut()
	}
}
