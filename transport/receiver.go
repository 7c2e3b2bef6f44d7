package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

var (
	_ framing.Positioner = (*responseReceiver)(nil)
	_ framing.Buffered   = (*responseReceiver)(nil)
)

// A responseReceiver reads a stream from the body of a response.
type responseReceiver struct {
	// Immutable after construction.
	resp   *http.Response
	cancel context.CancelCauseFunc

	// Owned by the caller of Receive.
	body    *streamBody
	coded   *codedBody // nil if there is no content coding
	decoder framing.Decoder
	err     error // the first error of Receive, which later calls return again
}

// newReceiver returns a Receiver for resp. cancel ends the context of the request. If newReceiver
// returns an error, the caller must close resp.
func newReceiver(resp *http.Response, r *Request, cancel context.CancelCauseFunc) (*responseReceiver, error) {
	f, err := r.FramerFor(resp.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	body := &streamBody{r: resp.Body, activity: r.Activity, undelimited: undelimited(resp)}
	c := &responseReceiver{resp: resp, cancel: cancel, body: body}
	name, err := r.codingFor(resp.Header)
	switch {
	case err != nil:
		return nil, err
	case name == "":
		c.decoder = f.NewDecoder(body, r.Limit)
		return c, nil
	}
	if c.coded, err = newCodedBody(name, body, r.Limit); err != nil {
		return nil, err
	}
	c.decoder = f.NewDecoder(c.coded, r.Limit)
	return c, nil
}

// undelimited reports whether only the end of the connection marks the end of the body. A
// clean end then cannot be distinguished from a lost connection.
func undelimited(resp *http.Response) bool {
	return resp.ProtoMajor == 1 && resp.ContentLength < 0 && len(resp.TransferEncoding) == 0
}

func (r *responseReceiver) Header() http.Header { return r.resp.Header }

func (r *responseReceiver) LastEventID() string {
	if p, ok := r.decoder.(framing.Positioner); ok {
		return p.LastEventID()
	}
	return ""
}

func (r *responseReceiver) Receive() (framing.WatchEvent, error) {
	if r.err != nil {
		return framing.WatchEvent{}, r.err
	}
	if r.coded != nil {
		r.coded.left = r.coded.limit
	}
	e, err := r.decoder.Decode()
	if err != nil {
		r.err = r.streamError(err)
		return framing.WatchEvent{}, r.err
	}
	return e, nil
}

func (r *responseReceiver) Buffered() (framing.WatchEvent, bool) {
	if b, ok := r.decoder.(framing.Buffered); ok && r.err == nil {
		return b.Buffered()
	}
	return framing.WatchEvent{}, false
}

// JoinsEvents reports whether Buffered returns the events that have arrived together. A compressed
// stream is flushed after each event, so its events are decoded one by one.
func (r *responseReceiver) JoinsEvents() bool {
	_, ok := r.decoder.(framing.Buffered)
	return ok && r.coded == nil
}

// streamError converts an error of the decoder to the error of Receive. The decoder sees every end
// of the body as io.EOF, or as io.ErrUnexpectedEOF within an event. r.body.err is the actual
// reason.
func (r *responseReceiver) streamError(err error) error {
	isUndecoded := r.coded != nil && r.coded.r.Incomplete() // some bytes are still compressed
	withinEvent := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) && isUndecoded
	if !withinEvent && !errors.Is(err, io.EOF) {
		return err // the data is invalid
	}
	if r.body.err == nil {
		return cmp.Or(r.coded.truncationError(withinEvent), err)
	}
	if ctx := r.resp.Request.Context(); ctx.Err() != nil {
		if context.Cause(ctx) == connio.ErrReceiverClosed {
			return connio.ErrReceiverClosed
		}
		return ctx.Err()
	}
	return connectionError(r.body.err, withinEvent)
}

// connectionError returns the error of a stream whose connection failed with cause.
func connectionError(cause error, withinEvent bool) *listwatch.Error {
	e := &listwatch.Error{Code: listwatch.Unavailable, Op: "receive", Message: "the connection failed", Err: cause}
	if isChunkError(cause) {
		e.Code, e.Message = listwatch.Corrupt, "invalid chunked coding"
	}
	switch {
	case withinEvent:
		e.Message += " within an event"
		e.Err = fmt.Errorf("%w: %v", io.ErrUnexpectedEOF, cause)
	case errors.Is(cause, io.ErrUnexpectedEOF):
		// net/http returns io.ErrUnexpectedEOF for a missing last chunk. In a
		// listwatch.Error it would mean an incomplete event.
		e.Err = errors.New("the connection ended early")
	}
	return e
}

// isChunkError reports whether err is net/http's error for an invalid chunk. Most of these errors
// are not exported, but their texts contain "chunk".
func isChunkError(err error) bool {
	return errors.Is(err, http.ErrLineTooLong) || strings.Contains(err.Error(), "chunk")
}

// Close cancels the request, which closes the connection or resets the stream.
func (r *responseReceiver) Close() error {
	r.cancel(connio.ErrReceiverClosed)
	r.resp.Body.Close() // the request was canceled, so this error has no meaning
	return nil
}

// A streamBody is a body that always ends with [io.EOF], so that the decoder can report
// whether the end is within an event. It keeps the actual error.
type streamBody struct {
	// Immutable after construction.
	r           io.Reader
	activity    func()
	undelimited bool

	err error // the error of r, unless it is io.EOF
}

func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if n > 0 && b.activity != nil {
		b.activity()
	}
	switch {
	case err == nil:
		return n, nil
	case !errors.Is(err, io.EOF):
		b.err = err
	case b.undelimited:
		b.err = errors.New("the response has no length, so it may be incomplete")
	}
	return n, io.EOF
}
