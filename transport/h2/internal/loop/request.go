package loop

import (
	"io"
	"net/http"

	"golang.org/x/net/http2"
)

// receiveBlock handles a complete header block: the head of a request, or its trailers.
func (c *conn) receiveBlock() error {
	b := &c.headers
	defer b.release()
	if b.stream%2 == 0 {
		return connError{http2.ErrCodeProtocol, "a client must open streams with odd numbers"}
	}
	if b.selfDependent {
		return connError{http2.ErrCodeProtocol, "a stream depends on itself"}
	}
	if st := c.streams.find(b.stream); st != nil {
		return c.receiveTrailers(st)
	}
	if b.stream <= c.lastID {
		return c.receiveLateTrailers()
	}
	c.budget.explain(framesPerStream)
	if c.goAwayState == goAwayRefused {
		if (b.stream-c.lastID)/2 <= c.settings.streams { // the stream may have been under way
			return nil
		}
		return c.budget.charge(costFrame)
	}
	c.lastID = b.stream
	if b.invalid != nil {
		return c.rejectStream(http2.ErrCodeProtocol)
	}
	if len(c.streams) >= int(c.settings.streams) {
		return c.rejectStream(http2.ErrCodeRefusedStream)
	}
	r, err := c.newRequest(b)
	if err != nil {
		return c.rejectStream(http2.ErrCodeProtocol)
	}
	c.openExchange(c.addStream(b.stream), r, b)
	return nil
}

// rejectStream resets the stream that the current header block would open.
func (c *conn) rejectStream(code http2.ErrCode) error {
	b := &c.headers
	if !b.end {
		c.cut.add(cutStream{b.stream, firstWindow}, int(c.settings.streams))
	}
	return c.streamError(b.stream, code)
}

// receiveLateTrailers handles a header block for a stream that is closed.
func (c *conn) receiveLateTrailers() error {
	b := &c.headers
	if c.cut.find(b.stream) == nil {
		return connError{http2.ErrCodeStreamClosed, "HEADERS for a stream that is closed"}
	}
	if !b.end {
		return c.budget.charge(costFrame)
	}
	c.cut.end(b.stream)
	return nil
}

func (c *conn) receiveTrailers(st *stream) error {
	b := &c.headers
	switch {
	case st.remoteClosed:
		return c.streamError(st.id, http2.ErrCodeStreamClosed)
	case !b.end, b.tooLarge, b.invalid != nil, b.pseudo.seen != 0, st.ex != nil && st.ex.upgrade:
		// After CONNECT there are no trailers either (RFC 9113, section 8.5).
		return c.streamError(st.id, http2.ErrCodeProtocol)
	}
	if st.ex != nil {
		for _, f := range b.fields {
			st.ex.body.trailer.Add(f.Name, f.Value)
		}
	}
	return c.receiveEnd(st)
}

// newRequest returns the request of a header block, without its body and context.
func (c *conn) newRequest(b *headerBlock) (*http.Request, error) {
	p := &b.pseudo
	r := &http.Request{
		Method: p.method, Proto: "HTTP/2.0", ProtoMajor: 2, Header: make(http.Header, len(b.fields)),
		Host: p.authority, RequestURI: p.path, RemoteAddr: c.remote, TLS: c.tls,
		ContentLength: -1,
	}
	if b.tooLarge {
		return r, nil // the handler responds with 431, whatever the length of the body
	}
	if err := p.setTarget(r, c.settings.extendedConnect); err != nil {
		return nil, err
	}
	if err := setFields(r, b.fields); err != nil || p.protocol == "" {
		return r, err
	}
	if r.ContentLength >= 0 {
		return nil, errLength // a tunnel has no content (RFC 9110, section 9.3.6)
	}
	r.Header[protocolField] = []string{p.protocol}
	return r, nil
}

// receiveData handles DATA.
func (c *conn) receiveData(f *http2.DataFrame) error {
	n := int32(f.Length)
	if c.isIdle(f.StreamID) {
		return connError{http2.ErrCodeProtocol, "DATA for a stream that was never opened"}
	}
	if !c.recv.take(n) {
		return connError{http2.ErrCodeFlowControl, "DATA exceeds the connection's window"}
	}
	st := c.streams.find(f.StreamID)
	if st == nil || st.remoteClosed {
		c.grant(n)
		if f.StreamID <= c.lastID && !c.cut.take(f.StreamID, n) {
			return c.streamError(f.StreamID, http2.ErrCodeStreamClosed)
		}
	}
	if n == 0 && !f.StreamEnded() || len(f.Data()) == 0 && n > 0 {
		if err := c.budget.charge(costFrame); err != nil {
			return err
		}
	}
	if st == nil {
		if f.StreamEnded() {
			c.cut.end(f.StreamID)
		}
		return nil
	}
	if ok, err := c.receiveBody(st, f.Data(), n); !ok || !f.StreamEnded() {
		return err
	}
	return c.receiveEnd(st)
}

// receiveBody adds data to the body of the request. size is the size of the frame with its padding.
// It reports whether the client was allowed to send the data.
func (c *conn) receiveBody(st *stream, data []byte, size int32) (bool, error) {
	if st.ex == nil {
		// The handler has returned, but its watch continues. The rest of the body is dropped. More
		// of it than the stream's window permits does no harm, and counting it would take memory
		// for each idle watch.
		c.grant(size)
		return true, nil
	}
	b := &st.ex.body
	if !b.window.take(size) {
		c.grant(size)
		return false, c.streamError(st.id, http2.ErrCodeFlowControl)
	}
	b.received += int64(len(data))
	if b.declared >= 0 && b.received > b.declared {
		c.grant(size)
		return false, c.streamError(st.id, http2.ErrCodeProtocol)
	}
	if b.closed {
		c.grant(size)
		b.discard()
		c.keepOpen(st)
		return true, nil
	}
	if padding := size - int32(len(data)); padding > 0 {
		b.grant(padding)
	}
	b.add(data)
	return true, nil
}

// receiveEnd handles END_STREAM.
func (c *conn) receiveEnd(st *stream) error {
	if st.ex != nil {
		b := &st.ex.body
		if b.declared >= 0 && b.received != b.declared {
			return c.streamError(st.id, http2.ErrCodeProtocol)
		}
		b.fail(io.EOF)
	}
	st.remoteClosed = true
	if st.err != nil { // the stream was half-closed
		st.fail(errClosed)
	}
	return nil
}
