package websocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

const (
	// closeFrameTimeout is the maximum time that a client takes to write a close frame.
	closeFrameTimeout = time.Second
	// maxScratch is the maximum size of the buffer that a receiver keeps between two messages.
	maxScratch = 64 << 10
)

// A messageReader is a client's end of a WebSocket, implemented by a library.
type messageReader interface {
	// next waits for the next message. If the server has sent a close frame, next answers it
	// and returns a *peerClose.
	next() (isBinary bool, message io.Reader, err error)
	// release frees the resources of the library after the connection has been closed.
	release()
}

// placeholderURL is the URL that a library receives for its handshake. It has no effect,
// because the connection is open already.
var placeholderURL = &url.URL{Scheme: "http", Host: "handshake.invalid", Path: "/"}

// A peerClose is the close frame of the peer, as an error.
type peerClose struct {
	code   closeCode
	reason string
}

func (c *peerClose) Error() string { return fmt.Sprintf("closed with code %d %q", c.code, c.reason) }

// A receiver reads a watch.
type receiver struct {
	// Immutable after construction.
	conn          *conn
	reader        messageReader
	header        http.Header
	framings      []framing.Framer
	agreed        framing.MessageFramer // the framing that the handshake named, or nil
	detachContext func() bool

	// Owned by the caller of Receive.
	scratch bytes.Buffer
	err     error // the last error of Receive

	mu       sync.Mutex
	closeErr error // guarded by mu; the reason why this end has closed the connection
}

var errReceiverClosed = &listwatch.Error{
	Code: listwatch.Unavailable, Op: "receive", Message: "the receiver was closed", Err: net.ErrClosed,
}

func newReceiver(ctx context.Context, c *conn, m messageReader, h http.Header, request *transport.Request) *receiver {
	r := &receiver{conn: c, reader: m, header: h, framings: request.Framings, agreed: agreedFraming(h, request)}
	r.detachContext = context.AfterFunc(ctx, func() { r.closeWith(ctx.Err()) })
	return r
}

// agreedFraming returns the framing that the response to the handshake names, or nil if it
// names none.
func agreedFraming(h http.Header, r *transport.Request) framing.MessageFramer {
	if name := h.Get("Sec-Websocket-Protocol"); name != "" {
		for _, f := range r.Framings {
			if framing.SubprotocolOf(f) == name {
				return f.(framing.MessageFramer)
			}
		}
	}
	f, err := r.FramerFor(h.Get("Content-Type"))
	if err != nil {
		return nil
	}
	return f.(framing.MessageFramer)
}

// findFraming returns the framing with a media type, or nil if there is none. All framings must
// have a message form.
func findFraming(framings []framing.Framer, mediaType string) framing.MessageFramer {
	for _, f := range framings {
		if f.MediaType() == mediaType {
			return f.(framing.MessageFramer)
		}
	}
	return nil
}

func (r *receiver) Header() http.Header { return r.header }

// Receive implements [transport.Receiver].
func (r *receiver) Receive() (framing.WatchEvent, error) {
	if r.err != nil {
		return framing.WatchEvent{}, r.err
	}
	e, err := r.receive()
	if err != nil {
		r.err = r.fail(err)
		r.detachContext()
		r.conn.cut()
		r.reader.release()
		return framing.WatchEvent{}, r.err
	}
	return e, nil
}

func (r *receiver) receive() (framing.WatchEvent, error) {
	isBinary, message, err := r.reader.next()
	if err != nil {
		return framing.WatchEvent{}, err
	}
	if r.scratch.Cap() > maxScratch {
		r.scratch = bytes.Buffer{}
	}
	r.scratch.Reset()
	limit := r.conn.validator.maxMessage
	if _, err := r.scratch.ReadFrom(io.LimitReader(message, max(limit, limit+1))); err != nil {
		return framing.WatchEvent{}, err
	}
	data := r.scratch.Bytes()
	if int64(len(data)) > limit {
		// The validator has limited only the size before decompression.
		return framing.WatchEvent{}, errMessageTooBig(limit)
	}
	if !isBinary && !utf8.Valid(data) {
		// rfc6455#section-8.1 requires UTF-8.
		return framing.WatchEvent{}, &protocolError{closeBadText, "text that is not UTF-8"}
	}
	f, err := r.framingOf(isBinary)
	if err != nil {
		return framing.WatchEvent{}, err
	}
	return f.DecodeMessage(data)
}

// framingOf returns the framing of a message. A text message never has a binary framing, even
// if the handshake agreed on one: kube-apiserver accepts any subprotocol and sends JSON.
func (r *receiver) framingOf(isBinary bool) (framing.MessageFramer, error) {
	if r.agreed != nil && (isBinary || !r.agreed.Binary()) {
		return r.agreed, nil
	}
	mediaType := framing.JSON{}.MediaType()
	if isBinary {
		mediaType = framing.CBORSeq{}.MediaType()
	}
	if f := findFraming(r.framings, mediaType); f != nil {
		return f, nil
	}
	return nil, &listwatch.Error{
		Code: listwatch.Unsupported, Op: "receive", Message: "the server sends " + mediaType + ", which was not requested",
	}
}

// fail returns the error that Receive returns after err has ended the watch. If the server has
// violated the protocol, fail sends it a close frame with the reason.
func (r *receiver) fail(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closeErr != nil {
		return r.closeErr
	}
	violation, ok := errors.AsType[*protocolError](err)
	if !ok {
		violation, ok = errors.AsType[*protocolError](r.conn.readErr)
	}
	if ok {
		r.sendClose(violation.code, violation.reason)
		return &listwatch.Error{Code: listwatch.Corrupt, Op: "receive", Message: violation.reason, Err: violation}
	}
	if c, ok := err.(*peerClose); ok {
		return c.receiveError()
	}
	if cause := r.conn.failure(); cause != nil {
		return r.cutError(cause)
	}
	if _, ok := errors.AsType[*listwatch.Error](err); !ok {
		// The library has rejected a frame and sent a close frame.
		return &listwatch.Error{Code: listwatch.Corrupt, Op: "receive", Err: err}
	}
	// The framing has rejected a message.
	r.sendClose(closePolicy, "")
	return err
}

// receiveError returns the error that Receive returns after the close frame c.
func (c *peerClose) receiveError() error {
	e := &listwatch.Error{Code: listwatch.Unavailable, Op: "receive", Remote: true, Message: c.Error()}
	switch c.code {
	case closeNormal, closeGoingAway:
		return io.EOF
	case closeProtocol, closeBadText, closeTooBig, 1003, 1010:
		// The server claims that this end has violated the protocol.
		e.Code = listwatch.Corrupt
	}
	return e
}

// cutError returns the error that Receive returns if the connection ended without a close frame,
// which is close code 1006 of rfc6455#section-7.1.5.
func (r *receiver) cutError(cause error) error {
	e := &listwatch.Error{Code: listwatch.Unavailable, Op: "receive", Message: "the connection ended without a close frame"}
	switch {
	case r.conn.validator.isMessageUnfinished():
		e.Message += ", within an event: " + cause.Error()
		e.Err = io.ErrUnexpectedEOF
	case !errors.Is(cause, io.EOF) && !errors.Is(cause, io.ErrUnexpectedEOF):
		// Err must be neither io.EOF, which would mean a clean end, nor io.ErrUnexpectedEOF, which
		// would mean an end within an event.
		e.Err = cause
	}
	return e
}

// sendClose writes a close frame. Writes fail after closeFrameTimeout.
func (r *receiver) sendClose(code closeCode, reason string) {
	r.conn.deadline.setFinal(closeFrameTimeout)
	_ = r.conn.writeClose(code, reason)
}

// Close writes a close frame and closes the connection.
func (r *receiver) Close() error {
	r.detachContext()
	r.closeWith(errReceiverClosed)
	r.reader.release()
	return nil
}

// closeWith closes the connection from this end. Receive then returns err.
func (r *receiver) closeWith(err error) {
	r.mu.Lock()
	if r.closeErr != nil {
		r.mu.Unlock()
		return
	}
	r.closeErr = err
	r.mu.Unlock()
	r.sendClose(closeNormal, "")
	r.conn.cut()
}
