package loop

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// A body is the body of a request. Its fields are guarded by the connection's mutex.
type body struct {
	x           *exchange
	arrived     sync.Cond // signals a change of data or err
	data        []byte
	unread      int // the bytes at the end of data that were not read
	window      window
	sinceGrowth int64 // the bytes that were read since the window grew last
	declared    int64 // Content-Length, or -1
	received    int64
	trailer     http.Header
	err         error     // the result of Read when no data is left; nil while more may arrive
	closed      bool      // the rest is discarded
	discarded   int64     // the bytes that were granted after close
	discardBy   time.Time // when a half-closed stream is reset
}

// grant opens the windows of the stream and of the connection again for n bytes that were consumed.
func (b *body) grant(n int32) {
	st := b.x.st
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
		b.x.st.c.grant(int32(n))
	}
	b.discard()
}

// isTooLarge reports whether the rest of the body is larger than what is discarded.
func (b *body) isTooLarge() bool {
	return b.declared-b.received > int64(b.window.open)+discardBytes-b.discarded
}

// discard opens the stream's window for a body that is no longer read. The whole window is granted
// at once, because the client waits for it.
func (b *body) discard() {
	st := b.x.st
	if st.remoteClosed || st.err != nil && st.err != errClosed || b.x.upgrade || b.x.taken {
		return
	}
	w := &b.window
	wanted := int64(st.c.settings.streamWindow)
	if b.declared >= 0 {
		wanted = min(wanted, b.declared-b.received)
	}
	granted := min(wanted-int64(w.open), discardBytes-b.discarded)
	if granted <= 0 || int64(w.open) >= wanted/2 && wanted == int64(st.c.settings.streamWindow) {
		return // each update is worth a frame
	}
	b.discarded += granted
	w.open += int32(granted)
	st.c.out.windowUpdate(st.id, uint32(granted))
	st.c.wakeWriter()
}

// A requestBody is the Body of a request.
type requestBody struct{ b *body }

// Read implements io.Reader. It sends 100 Continue if the client expects it.
func (r requestBody) Read(p []byte) (int, error) {
	b := r.b
	c := b.x.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if !b.closed {
		b.x.sendContinue()
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
	if b.unread -= n; b.unread == 0 && b.x.upgrade {
		b.data = nil // release the buffer, because a WebSocket is idle most of the time
	}
	b.grant(int32(n))
	return n, nil
}

// copyTrailer copies to the request the received trailers that the client had announced.
func (b *body) copyTrailer() {
	for name := range b.x.req.Trailer {
		if v, ok := b.trailer[name]; ok {
			b.x.req.Trailer[name] = v
		}
	}
}

// Close implements io.Closer. It drops the rest of the body.
func (r requestBody) Close() error {
	c := r.b.x.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	r.b.close()
	return nil
}
