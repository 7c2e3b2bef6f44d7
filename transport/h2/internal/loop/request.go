package loop

import (
	"io"

	"golang.org/x/net/http2"
)

// receiveTrailers handles the trailers of the request.
func (s *stream) receiveTrailers(b *headerBlock) error {
	switch {
	case s.remoteClosed:
		return s.c.streamError(s.id, http2.ErrCodeStreamClosed)
	case !b.end, b.tooLarge, b.invalid != nil, b.pseudo.seen != 0, s.ex != nil && s.ex.upgrade:
		// After CONNECT there are no trailers either (RFC 9113, section 8.5).
		return s.c.streamError(s.id, http2.ErrCodeProtocol)
	}
	if s.ex != nil {
		for _, f := range b.fields {
			s.ex.body.trailer.Add(f.Name, f.Value)
		}
	}
	return s.receiveEnd()
}

// receiveBody adds data to the body of the request. size is the size of the frame with its padding.
// It reports whether the client was allowed to send the data.
func (s *stream) receiveBody(data []byte, size int32) (bool, error) {
	if s.ex == nil {
		// The handler has returned, but its watch continues. The rest of the body is dropped. More
		// of it than the stream's window permits does no harm, and counting it would take memory
		// for each idle watch.
		s.c.grant(size)
		return true, nil
	}
	b := &s.ex.body
	if !b.window.take(size) {
		s.c.grant(size)
		return false, s.c.streamError(s.id, http2.ErrCodeFlowControl)
	}
	b.received += int64(len(data))
	if b.declared >= 0 && b.received > b.declared {
		s.c.grant(size)
		return false, s.c.streamError(s.id, http2.ErrCodeProtocol)
	}
	if b.closed {
		s.c.grant(size)
		b.discard()
		s.keepOpen()
		return true, nil
	}
	if padding := size - int32(len(data)); padding > 0 {
		b.grant(padding)
	}
	b.add(data)
	return true, nil
}

// receiveEnd handles END_STREAM.
func (s *stream) receiveEnd() error {
	if s.ex != nil {
		b := &s.ex.body
		if b.declared >= 0 && b.received != b.declared {
			return s.c.streamError(s.id, http2.ErrCodeProtocol)
		}
		b.fail(io.EOF)
	}
	s.remoteClosed = true
	if s.err != nil { // the stream was half-closed
		s.fail(errClosed)
	}
	return nil
}
