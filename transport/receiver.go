package transport

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
)

var _ framing.Positioner = (*responseReceiver)(nil)

// A responseReceiver reads a stream that is the body of a response.
type responseReceiver struct {
	// Immutable after construction.
	resp   *http.Response
	cancel context.CancelCauseFunc

	// Owned by the caller of Receive.
	body    *streamBody
	coded   *codedBody // nil: there is no content coding
	decoder framing.Decoder
	err     error // what Receive returned last
}

var errReceiverClosed error = &listwatch.Error{Code: listwatch.Unavailable, Op: "receive", Message: "the receiver was closed", Err: net.ErrClosed}

// newReceiver returns a Receiver of resp, whose request's context ends with cancel. An error leaves resp open.
func newReceiver(resp *http.Response, r *Request, cancel context.CancelCauseFunc) (*responseReceiver, error) {
	f, err := r.FramerFor(resp.Header.Get("Content-Type"))
	if err != nil {
		return nil, err
	}
	body := &streamBody{r: resp.Body, activity: r.Activity, undelimited: undelimited(resp)}
	c := &responseReceiver{resp: resp, cancel: cancel, body: body}
	name, err := r.coding(resp.Header)
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

// undelimited reports whether only the end of the connection ends the body. Such an end can't be told from a cut.
func undelimited(resp *http.Response) bool {
	return resp.ProtoMajor == 1 && resp.ContentLength < 0 && len(resp.TransferEncoding) == 0
}

func (c *responseReceiver) Header() http.Header { return c.resp.Header }

func (c *responseReceiver) LastEventID() string {
	if p, ok := c.decoder.(framing.Positioner); ok {
		return p.LastEventID()
	}
	return ""
}

func (c *responseReceiver) Receive() (framing.WatchEvent, error) {
	if c.err != nil {
		return framing.WatchEvent{}, c.err
	}
	if c.coded != nil {
		c.coded.renew()
	}
	e, err := c.decoder.Decode()
	if err != nil {
		c.err = c.explain(err)
		return framing.WatchEvent{}, c.err
	}
	return e, nil
}

// explain turns an error of the decoder into one of the stream.
func (c *responseReceiver) explain(err error) error {
	within := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) && c.coded.within()
	switch {
	case !within && !errors.Is(err, io.EOF):
		return err
	case c.body.broken == nil:
		return cmp.Or(c.coded.incomplete(within), err)
	}
	if ctx := c.resp.Request.Context(); ctx.Err() != nil {
		if context.Cause(ctx) == errReceiverClosed {
			return errReceiverClosed
		}
		return ctx.Err()
	}
	return brokenError(c.body.broken, within)
}

// brokenError says that the connection, and with it the stream, broke: within an event or between two.
func brokenError(cause error, within bool) *listwatch.Error {
	e := &listwatch.Error{Code: listwatch.Unavailable, Op: "receive", Message: "the stream was cut off", Err: cause}
	if isChunkError(cause) {
		e.Code, e.Message = listwatch.Corrupt, "the chunked coding is broken"
	}
	switch {
	case within:
		e.Message += " within an event: " + cause.Error()
		e.Err = io.ErrUnexpectedEOF
	case errors.Is(cause, io.ErrUnexpectedEOF):
		// This is how net/http says that the last chunk never came; ours would say that an event is torn.
		e.Err = errors.New("the connection ended early")
	}
	return e
}

// isChunkError reports whether err is net/http's complaint about bytes that are no chunks. They have no type, but all say so.
func isChunkError(err error) bool {
	return errors.Is(err, http.ErrLineTooLong) || strings.Contains(err.Error(), "chunk")
}

// Close cancels the request, which closes the connection or resets the stream.
func (c *responseReceiver) Close() error {
	c.cancel(errReceiverClosed)
	c.resp.Body.Close() // the request is cancelled: there is nothing to learn from the error
	return nil
}

// A streamBody is a body that always ends with [io.EOF], so that the decoder tells whether that is within an event, and
// remembers in what way it ended.
type streamBody struct {
	// Immutable after construction.
	r           io.Reader
	activity    func()
	undelimited bool

	broken error // not nil once r ended otherwise than at its end
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
		b.broken = err
	case b.undelimited:
		b.broken = errors.New("the answer doesn't say where it ends, so this may be a cut")
	}
	return n, io.EOF
}
