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

// awaitEnd makes the stream half-closed: the server has sent the whole response, and the client has
// not ended its request. Most clients are about to do so, and then the stream ends without
// RST_STREAM, with which some clients would drop a response that they have not read yet. Until then
// the frames of the client are checked as on any other stream.
//
// A client that does not end its request in time gets RST_STREAM(NO_ERROR): it need not send the
// rest (RFC 9113, section 8.1). A client whose request is larger than what is discarded gets it at
// once.
func (s *stream) awaitEnd() {
	now := time.Now()
	if s.ex != nil {
		s.ex.body.discardBy = now.Add(discardTime)
	}
	s.c.halfClosed.set(s, now.Add(endDelay))
	if s.ex != nil && s.ex.body.isTooLarge() {
		s.resetUpload()
		return
	}
	s.c.arm(now.Add(endDelay))
}

// keepOpen defers the reset of a half-closed stream whose client has sent DATA.
func (s *stream) keepOpen() {
	if _, ok := s.c.halfClosed[s]; !ok {
		return
	}
	until := s.c.timers.lastFrame.Add(endDelay)
	if by := s.ex.body.discardBy; by.Before(until) {
		until = by
	}
	s.c.halfClosed.set(s, until)
}

// resetUpload ends a half-closed stream whose request is no longer needed.
func (s *stream) resetUpload() {
	s.reset(http2.ErrCodeNo)
	s.fail(errClosed)
	s.c.wakeWriter()
}
