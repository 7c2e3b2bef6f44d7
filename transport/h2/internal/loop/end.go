package loop

import (
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

// closeLocal ends the stream after END_STREAM was sent. If the client has not ended the stream yet,
// the stream becomes half-closed.
func (s *stream) closeLocal() {
	if s.remoteClosed {
		s.fail(errClosed)
		return
	}
	s.stop(errClosed)
	s.c.awaitEnd(s)
}

// reset sends RST_STREAM.
func (s *stream) reset(code http2.ErrCode) {
	c := s.c
	c.out.reset(s.id, code)
	if s.remoteClosed {
		return
	}
	window := c.settings.streamWindow
	if s.ex != nil {
		window = s.ex.body.window.open
	}
	c.cut.add(cutStream{s.id, window}, int(c.settings.streams))
}

// abort sends RST_STREAM and ends the stream. It has no effect after END_STREAM.
func (s *stream) abort(code http2.ErrCode, err error) {
	if s.err == nil {
		s.terminate(code, err)
	}
}

// terminate sends RST_STREAM and ends the stream, which must be in conn.streams.
func (s *stream) terminate(code http2.ErrCode, err error) {
	c := s.c
	s.reset(code)
	if c.settings.countError != nil {
		c.settings.countError("stream_" + code.String())
	}
	s.fail(err)
	c.wakeWriter()
}

// fail ends the stream without sending RST_STREAM.
func (s *stream) fail(err error) {
	c := s.c
	switch _, isHalfClosed := c.halfClosed[s]; {
	case s.err == nil:
		s.stop(err)
	case !isHalfClosed:
		return
	}
	if delete(c.halfClosed, s); len(c.halfClosed) == 0 {
		c.halfClosed = nil // release the map, because it never shrinks
	}
	c.removeStream(s)
}

// stop ends the part of the stream that sends.
func (s *stream) stop(err error) {
	c := s.c
	s.err = err
	if o := s.out; o != nil {
		s.out = nil
		if o.done != nil {
			close(o.done)
		}
	}
	c.endStall(s)
	c.leave(s)
	if f := s.step; f != nil {
		s.step = nil
		go f() // f finds out that the stream has ended
	}
	if s.ex != nil {
		s.ex.fail(err)
	}
	if s.watched {
		s.finishWatch()
	}
}

func (s *stream) abortWatch() {
	if !s.done {
		s.abort(http2.ErrCodeInternal, errAborted)
	}
}

// finishWatch ends the watch, and calls the function that OnDone has registered.
func (s *stream) finishWatch() {
	if s.done {
		return
	}
	s.done = true
	if f := s.onDone; f != nil {
		s.onDone = nil
		go f()
	}
}

// fail is called when the stream ends.
func (e *exchange) fail(err error) {
	e.body.fail(err)
	if err != errClosed {
		e.cancel()
	}
	if e.upgrade {
		e.stopTimers()
	}
	if !e.started { // release the request now: handlers that ignore their contexts may run for long
		c := e.st.c
		c.waiting = slices.DeleteFunc(c.waiting, func(o *exchange) bool { return o == e })
		e.release()
	}
}

// release releases the rest of the request.
func (e *exchange) release() {
	e.finished = true
	e.stopTimers()
	e.body.close()
	if e.taken || e.st.remoteClosed { // otherwise the rest of the request is still checked
		e.st.ex = nil
	}
}

func (e *exchange) stopTimers() {
	for _, t := range []*time.Timer{e.readTimer, e.writeTimer} {
		if t != nil {
			t.Stop()
		}
	}
}

// streamError resets a stream because of what the client has sent.
func (c *conn) streamError(id uint32, code http2.ErrCode) error {
	if st := c.streams.find(id); st != nil {
		st.terminate(code, errMalformed)
	} else {
		c.out.reset(id, code)
		c.wakeWriter()
	}
	return c.budget.charge(costFrame)
}

// addStream adds the stream with the number id.
func (c *conn) addStream(id uint32) *stream {
	st := &stream{c: c, id: id}
	c.streams = append(c.streams, st)
	c.timers.idleSince = time.Time{}
	if len(c.streams) == 1 {
		c.reportState(http.StateActive)
	}
	return st
}

func (c *conn) removeStream(st *stream) {
	c.streams.remove(st)
	if len(c.streams) > 0 || c.dead || c.closing {
		return
	}
	c.streams = nil
	c.reportState(http.StateIdle)
	if c.goAwayState == goAwayRefused {
		c.close()
		return
	}
	c.timers.idleSince = time.Now()
	c.armIdle()
}

// reportState reports the state to http.Server.ConnState without the mutex, because that function
// may block. If the state changes faster than the function returns, some changes are not reported.
func (c *conn) reportState(state http.ConnState) {
	if c.hs.ConnState == nil {
		return
	}
	if len(c.states) < 2 {
		c.states = append(c.states, state)
	} else {
		c.states = c.states[:1] // active, idle, active: the first of them is enough
	}
	if !c.reporting {
		c.reporting = true
		c.reports.Go(c.reportStates)
	}
}

func (c *conn) reportStates() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.states) > 0 {
		state := c.states[0]
		c.states = slices.Delete(c.states, 0, 1)
		c.mu.Unlock()
		c.hs.ConnState(c.nc, state)
		c.mu.Lock()
	}
	c.reporting = false
}

// close closes the connection after the output has been written.
func (c *conn) close() {
	c.closing = true
	c.failStreams(errConn)
	c.wakeWriter()
}

func (c *conn) failStreams(err error) {
	for _, st := range slices.Clone(c.streams) { // fail removes the stream
		st.fail(err)
	}
}

// disconnect fails all streams at once and makes the reader stop. The reader then closes the
// network connection.
func (c *conn) disconnect(err error) {
	if c.dead {
		return
	}
	c.dead = true
	c.drained.Broadcast()
	if errors.Is(err, net.ErrClosed) || err == nil || errors.Is(err, io.EOF) {
		err = errConn
	}
	c.failStreams(err)
	c.timer.Stop()
	_ = c.nc.SetReadDeadline(connio.LongAgo) // ends the reader
}

// After its last frame, the server waits at most lingerTime for the client to close the
// connection. After an error, it also stops waiting once it has discarded lingerBytes of input.
const (
	lingerTime  = connio.LingerTime
	lingerBytes = connio.LingerBytes
)

// closeWrite closes the writing side of the connection. The reader ends when the client closes the
// connection, or after lingerTime.
func (c *conn) closeWrite() {
	_ = c.nc.SetReadDeadline(time.Now().Add(lingerTime))
	connio.CloseWrite(c.nc)
}

// goAway begins a graceful end. It announces that the server will refuse new streams, and sends a
// PING. The acknowledgment of the PING shows that the client has read the announcement (RFC 9113,
// section 6.8).
func (c *conn) goAway() {
	if c.goAwayState != goAwayNone || c.closing || c.dead {
		return
	}
	c.goAwayState = goAwayWarned
	c.out.goAway(1<<31-1, http2.ErrCodeNo, "")
	c.out.ping(false, goAwayPing)
	c.timers.refuseAt = time.Now().Add(goAwayTimeout)
	c.armAt(c.timers.refuseAt)
	c.wakeWriter()
}

// goAwayTimeout is the maximum time between the first GOAWAY and the refusal of new streams. It
// applies if the client does not acknowledge goAwayPing earlier.
const goAwayTimeout = time.Second

var (
	goAwayPing    = [8]byte{'g', 'o', ' ', 'a', 'w', 'a', 'y', '.'}
	keepalivePing = [8]byte{'a', 'l', 'i', 'v', 'e', '?', ' ', ' '}
)

// refuse is the second step of a graceful end: from now on, the server ignores new streams.
func (c *conn) refuse() {
	if c.goAwayState != goAwayWarned || c.closing || c.dead {
		return
	}
	c.goAwayState = goAwayRefused
	c.timers.refuseAt = time.Time{}
	c.out.goAway(c.lastID, http2.ErrCodeNo, "")
	if len(c.streams) == 0 {
		c.close()
	}
	c.wakeWriter()
}
