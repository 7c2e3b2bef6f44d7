package loop

import (
	"io"
	"net/http"
	"sync"

	"golang.org/x/net/http2"
)

// A window is the number of bytes that the client may send, on a stream or on the connection.
type window struct {
	limit    int32 // the size of the window when all received bytes have been consumed
	open     int32 // the bytes that the client may still send
	consumed int32 // the consumed bytes that were not granted again yet
}

// take counts n received bytes. It reports whether the client was allowed to send them.
func (w *window) take(n int32) bool {
	if n > w.open {
		return false
	}
	w.open -= n
	return true
}

// consume counts n bytes that were consumed. It returns the increment for a WINDOW_UPDATE, or zero
// if the increment is still too small to be worth a frame.
func (w *window) consume(n int32) int32 {
	w.consumed += n
	if w.consumed < w.limit/4 {
		return 0
	}
	grant := w.consumed
	w.open += grant
	w.consumed = 0
	return grant
}

// grow doubles the window, but not beyond the given maximum, and returns the increment.
func (w *window) grow(most int32) int32 {
	n := min(w.limit, most-w.limit)
	w.limit += n
	w.open += n
	return n
}

// A body is the body of a request. Its fields are guarded by the connection's mutex.
type body struct {
	ex          *exchange
	arrived     sync.Cond // signals a change of data or err
	data        []byte
	unread      int // the bytes at the end of data that were not read
	window      window
	sinceGrowth int64 // the bytes that were read since the window grew last
	declared    int64 // Content-Length, or -1
	received    int64
	trailer     http.Header
	err         error // the result of Read when no data is left; nil while more may arrive
	closed      bool
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
	if err := c.receiveBody(st, f.Data(), n); err != nil || st.err != nil || !f.StreamEnded() {
		return err
	}
	return c.receiveEnd(st)
}

// receiveBody adds data to the body of the request. size is the size of the frame with its padding.
func (c *conn) receiveBody(st *stream, data []byte, size int32) error {
	if st.ex == nil { // no handler reads the body, and the stream's window never opens again
		c.grant(size)
		return nil
	}
	b := &st.ex.body
	if !b.window.take(size) {
		c.grant(size)
		return c.streamError(st.id, http2.ErrCodeFlowControl)
	}
	b.received += int64(len(data))
	if b.declared >= 0 && b.received > b.declared {
		c.grant(size)
		return c.streamError(st.id, http2.ErrCodeProtocol)
	}
	if b.closed {
		c.grant(size)
		return nil
	}
	if padding := size - int32(len(data)); padding > 0 {
		b.grant(padding)
	}
	b.add(data)
	return nil
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
	return nil
}

// grant opens the connection's window again for n bytes that were consumed.
func (c *conn) grant(n int32) {
	if inc := c.recv.consume(n); inc > 0 {
		c.out.windowUpdate(0, uint32(inc))
		c.wakeWriter()
	}
}

// grant opens the windows of the stream and of the connection again for n bytes that were consumed.
func (b *body) grant(n int32) {
	st := b.ex.st
	st.c.grant(n)
	if st.remoteClosed || st.err != nil || b.err != nil {
		return
	}
	inc := b.window.consume(n)
	// The window grows if the handler has read a full window of data and is waiting for more.
	if b.sinceGrowth += int64(n); b.unread == 0 && b.sinceGrowth >= int64(b.window.limit) {
		b.sinceGrowth = 0
		inc += b.window.grow(st.c.settings.streamWindow)
	}
	if inc > 0 {
		st.c.out.windowUpdate(st.id, uint32(inc))
		st.c.wakeWriter()
	}
}

func (b *body) add(p []byte) {
	if b.unread == 0 {
		b.data = b.data[:0]
	} else if len(b.data)+len(p) > cap(b.data) {
		b.data = b.data[:copy(b.data, b.data[len(b.data)-b.unread:])]
	}
	b.data = append(b.data, p...)
	b.unread += len(p)
	b.arrived.Broadcast()
}

// fail ends the body. err is io.EOF if the body is complete.
func (b *body) fail(err error) {
	if b.err == nil {
		b.err = err
		b.arrived.Broadcast()
	}
}

// discard drops the data that was not read.
func (b *body) discard() {
	n := b.unread
	b.data, b.unread = nil, 0
	if n > 0 {
		b.ex.st.c.grant(int32(n))
	}
}

// A requestBody is the Body of a request.
type requestBody struct{ b *body }

// Read implements io.Reader. It sends 100 Continue if the client expects it.
func (r requestBody) Read(p []byte) (int, error) {
	b := r.b
	c := b.ex.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	b.ex.sendContinue()
	for b.unread == 0 && b.err == nil && len(p) > 0 {
		b.arrived.Wait()
	}
	if b.unread == 0 {
		if b.err == io.EOF {
			b.copyTrailer()
		}
		return 0, b.err
	}
	n := copy(p, b.data[len(b.data)-b.unread:])
	if b.unread -= n; b.unread == 0 && b.ex.upgrade {
		b.data = nil // release the buffer, because a WebSocket is idle most of the time
	}
	b.grant(int32(n))
	return n, nil
}

// copyTrailer copies to the request the received trailers that the client had announced.
func (b *body) copyTrailer() {
	for name := range b.ex.req.Trailer {
		if v, ok := b.trailer[name]; ok {
			b.ex.req.Trailer[name] = v
		}
	}
}

// Close implements io.Closer. It drops the rest of the body.
func (r requestBody) Close() error {
	c := r.b.ex.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	r.b.closed = true
	r.b.discard()
	return nil
}
