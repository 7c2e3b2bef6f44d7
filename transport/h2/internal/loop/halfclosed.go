package loop

import (
	"time"

	"golang.org/x/net/http2"
)

// After the complete response, the rest of a request is discarded as long as the client sends it:
// up to discardBytes more than the window permitted, for discardTime. Java's HttpClient and clients
// with Python's h2 wait for their window to open before they look at a response or RST_STREAM.
const (
	// endDelay is the time after which a stream is reset if the client sends nothing.
	endDelay     = time.Second
	discardTime  = 10 * time.Second
	discardBytes = 8 << 20
)

// awaitEnd makes st half-closed: the server has sent the whole response, and the client has not
// ended its request. Most clients are about to do so, and then the stream ends without RST_STREAM,
// with which some clients would drop a response that they have not read yet. Until then the frames
// of the client are checked as on any other stream.
//
// A client that does not end its request in time gets RST_STREAM(NO_ERROR): it need not send the
// rest (RFC 9113, section 8.1). A client whose request is larger than what is discarded gets it at
// once.
func (c *conn) awaitEnd(st *stream) {
	if c.halfClosed == nil {
		c.halfClosed = make(map[*stream]time.Time)
	}
	now := time.Now()
	c.halfClosed[st] = now.Add(endDelay)
	if st.ex != nil {
		st.ex.body.discardBy = now.Add(discardTime)
		if st.ex.body.isTooLarge() {
			c.resetUpload(st)
			return
		}
	}
	c.armAt(c.halfClosed[st])
}

// isTooLarge reports whether the rest of the body is larger than what is discarded.
func (b *body) isTooLarge() bool {
	return b.declared-b.received > int64(b.window.open)+discardBytes-b.discarded
}

// discard opens the stream's window for a body that is no longer read. The whole window is granted
// at once, because the client waits for it.
func (b *body) discard() {
	st := b.ex.st
	if st.remoteClosed || st.err != nil && st.err != errClosed || b.ex.upgrade || b.ex.taken {
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

// keepOpen defers the reset of a half-closed stream whose client has sent DATA.
func (c *conn) keepOpen(st *stream) {
	if _, ok := c.halfClosed[st]; !ok {
		return
	}
	until := c.lastFrame.Add(endDelay)
	if by := st.ex.body.discardBy; by.Before(until) {
		until = by
	}
	c.halfClosed[st] = until
}

// resetHalfClosed resets the streams that the client has not ended in time.
func (c *conn) resetHalfClosed(now time.Time) {
	for st, at := range c.halfClosed {
		if isDue(at, now) {
			c.resetUpload(st)
		}
	}
}

// resetUpload ends a half-closed stream, whose request is not needed any more.
func (c *conn) resetUpload(st *stream) {
	st.reset(http2.ErrCodeNo)
	st.fail(errClosed)
	c.wakeWriter()
}
