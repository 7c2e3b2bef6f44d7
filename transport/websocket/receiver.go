package websocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
)

const (
	// closeWrite is how long a client tries to say goodbye.
	closeWrite = time.Second
	// maxScratch is how large a buffer a receiver keeps between two messages.
	maxScratch = 64 << 10
)

// A link is a client's end in the hands of a library.
type link interface {
	// next waits for the next message. The error is a *closed where the peer has sent a close frame, which has been answered.
	next() (isBinary bool, message io.Reader, err error)
	// release gives back what the library holds, once the connection is closed.
	release()
}

// closed says that the peer has sent a close frame.
type closed struct {
	code   closeCode
	reason string
}

func (c *closed) Error() string { return fmt.Sprintf("closed with code %d %q", c.code, c.reason) }

// A receiver reads a watch.
type receiver struct {
	// Immutable after construction.
	conn     *conn
	link     link
	header   http.Header
	framings []framing.Framer
	named    framing.MessageFramer // what the handshake settled on; nil: nothing
	stop     func() bool           // detaches from the context

	// Owned by the caller of Receive.
	scratch bytes.Buffer
	err     error // what Receive returned last

	mu      sync.Mutex
	givenUp error // guarded by mu; why this end has closed the connection
}

var errReceiverClosed = &listwatch.Error{Code: listwatch.Unavailable, Op: "receive", Message: "the receiver was closed", Err: net.ErrClosed}

func newReceiver(ctx context.Context, c *conn, l link, h http.Header, r *transport.Request) *receiver {
	w := &receiver{conn: c, link: l, header: h, framings: r.Framings, named: settled(h, r)}
	w.stop = context.AfterFunc(ctx, func() { w.giveUp(ctx.Err()) })
	return w
}

// settled returns the framing that the answer to the handshake names; nil: none.
func settled(h http.Header, r *transport.Request) framing.MessageFramer {
	if mediaType := subprotocols[h.Get("Sec-Websocket-Protocol")]; mediaType != "" {
		return find(r.Framings, mediaType)
	}
	f, err := r.FramerFor(h.Get("Content-Type"))
	if err != nil {
		return nil
	}
	return f.(framing.MessageFramer)
}

// find returns the framing with a media type; nil: there is none. All of framings have a message form.
func find(framings []framing.Framer, mediaType string) framing.MessageFramer {
	for _, f := range framings {
		if f.MediaType() == mediaType {
			return f.(framing.MessageFramer)
		}
	}
	return nil
}

func (r *receiver) Header() http.Header { return r.header }

// Receive returns the next event.
func (r *receiver) Receive() (framing.WatchEvent, error) {
	if r.err != nil {
		return framing.WatchEvent{}, r.err
	}
	e, err := r.receive()
	if err != nil {
		r.err = r.explain(err)
		r.stop()
		r.conn.cut()
		r.link.release()
		return framing.WatchEvent{}, r.err
	}
	return e, nil
}

func (r *receiver) receive() (framing.WatchEvent, error) {
	isBinary, message, err := r.link.next()
	if err != nil {
		return framing.WatchEvent{}, err
	}
	if r.scratch.Cap() > maxScratch {
		r.scratch = bytes.Buffer{}
	}
	r.scratch.Reset()
	limit := r.conn.gate.limit
	if _, err := r.scratch.ReadFrom(io.LimitReader(message, max(limit, limit+1))); err != nil {
		return framing.WatchEvent{}, err
	}
	data := r.scratch.Bytes()
	if int64(len(data)) > limit {
		// The gate has counted the bytes that came: these are decompressed.
		return framing.WatchEvent{}, tooBig(limit)
	}
	if !isBinary && !utf8.Valid(data) {
		// rfc6455#section-8.1
		return framing.WatchEvent{}, &violation{closeBadText, "text that is not UTF-8"}
	}
	f, err := r.framer(isBinary)
	if err != nil {
		return framing.WatchEvent{}, err
	}
	return f.DecodeMessage(data)
}

// framer returns the framing of a message. Text is no binary framing, whatever the handshake said: kube-apiserver agrees to
// any subprotocol and sends JSON.
func (r *receiver) framer(isBinary bool) (framing.MessageFramer, error) {
	if r.named != nil && (isBinary || !r.named.Binary()) {
		return r.named, nil
	}
	mediaType := subprotocols[SubprotocolJSON]
	if isBinary {
		mediaType = subprotocols[SubprotocolCBOR]
	}
	if f := find(r.framings, mediaType); f != nil {
		return f, nil
	}
	return nil, &listwatch.Error{Code: listwatch.Unsupported, Op: "receive", Message: "the server sends " + mediaType + ", which was not asked for"}
}

// explain turns what ended the stream into what the caller is told, and tells the server where it is to blame.
func (r *receiver) explain(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.givenUp != nil {
		return r.givenUp
	}
	v, broken := errors.AsType[*violation](err)
	if !broken {
		v, broken = errors.AsType[*violation](r.conn.failed)
	}
	if broken {
		r.conn.deadline.hurry(closeWrite)
		_ = r.conn.end(v.code, v.reason)
		return &listwatch.Error{Code: listwatch.Corrupt, Op: "receive", Message: v.reason, Err: v}
	}
	if c, ok := err.(*closed); ok {
		return c.explain()
	}
	if cause := r.conn.cause(); cause != nil {
		return r.cutOff(cause)
	}
	if _, ok := errors.AsType[*listwatch.Error](err); !ok {
		// The library doesn't like what it got, and has said so.
		return &listwatch.Error{Code: listwatch.Corrupt, Op: "receive", Err: err}
	}
	r.conn.deadline.hurry(closeWrite)
	_ = r.conn.end(closePolicy, "")
	return err // of the framing
}

// explain returns what a close frame means.
func (c *closed) explain() error {
	e := &listwatch.Error{Code: listwatch.Unavailable, Op: "receive", Remote: true, Message: c.Error()}
	switch c.code {
	case closeNormal, closeGoingAway:
		return io.EOF
	case closeProtocol, closeBadText, closeTooBig, 1003, 1010:
		// The server says that this end broke the protocol.
		e.Code = listwatch.Corrupt
	}
	return e
}

// cutOff returns that the connection broke: close code 1006, rfc6455#section-7.1.5.
func (r *receiver) cutOff(cause error) error {
	e := &listwatch.Error{Code: listwatch.Unavailable, Op: "receive", Message: "the stream was cut off, without a close frame"}
	switch {
	case r.conn.gate.within():
		e.Message += ", within an event: " + cause.Error()
		e.Err = io.ErrUnexpectedEOF
	case !errors.Is(cause, io.EOF) && !errors.Is(cause, io.ErrUnexpectedEOF):
		e.Err = cause // an io.EOF would look like a clean end, an io.ErrUnexpectedEOF like a torn event
	}
	return e
}

// Close says goodbye and closes the connection.
func (r *receiver) Close() error {
	r.stop()
	r.giveUp(errReceiverClosed)
	r.link.release()
	return nil
}

// giveUp closes the connection from this end.
func (r *receiver) giveUp(why error) {
	r.mu.Lock()
	if r.givenUp != nil {
		r.mu.Unlock()
		return
	}
	r.givenUp = why
	r.mu.Unlock()
	r.conn.deadline.hurry(closeWrite)
	_ = r.conn.end(closeNormal, "")
	r.conn.cut()
}
