package loop

import (
	"time"

	"golang.org/x/net/http2"
)

// endDelay is the time that the client has to end a stream after the complete response.
const endDelay = 100 * time.Millisecond

// awaitEnd makes st half-closed: the server has sent the whole response, and the client has not
// ended its request. Most clients are about to do so, and then the stream ends without RST_STREAM,
// with which some clients would drop a response that they have not read yet. Until then the frames
// of the client are checked as on any other stream.
//
// A client whose request needs a larger window gets RST_STREAM(NO_ERROR) at once: it need not send
// the rest of its request (RFC 9113, section 8.1). The others get it after endDelay.
func (c *conn) awaitEnd(st *stream) {
	if c.halfClosed == nil {
		c.halfClosed = make(map[*stream]time.Time)
	}
	c.halfClosed[st] = time.Now().Add(endDelay)
	if st.ex != nil && st.ex.body.needsWindow() {
		c.resetUpload(st)
		return
	}
	c.armAt(c.halfClosed[st])
}

// needsWindow reports whether the window is too small for the rest of the body.
func (b *body) needsWindow() bool { return b.declared-b.received > int64(b.window.open) }

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
