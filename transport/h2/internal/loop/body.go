package loop

import (
	"io"
	"net/http"
)

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

// close ends a Read in progress, and drops the data that was not read and the data that follows.
func (b *body) close() {
	if b.closed {
		return
	}
	b.closed = true
	b.arrived.Broadcast()
	n := b.unread
	b.data, b.unread = nil, 0
	if n > 0 {
		b.ex.st.c.grant(int32(n))
	}
	b.discard()
}

// A requestBody is the Body of a request.
type requestBody struct{ b *body }

// Read implements io.Reader. It sends 100 Continue if the client expects it.
func (r requestBody) Read(p []byte) (int, error) {
	b := r.b
	c := b.ex.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if !b.closed {
		b.ex.sendContinue()
	}
	for b.unread == 0 && b.err == nil && len(p) > 0 && !b.closed {
		b.arrived.Wait()
	}
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
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
	r.b.close()
	return nil
}
