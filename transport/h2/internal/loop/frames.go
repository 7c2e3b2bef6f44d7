package loop

import (
	"errors"
	"net"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

// A frameReader reads the frames of a connection.
type frameReader struct {
	in      connio.Reader
	framer  *http2.Framer
	arrived time.Time // the time at which the bytes that are being read arrived
}

func (r *frameReader) init(nc net.Conn, maxSize uint32) {
	r.in = connio.NewReader(nc)
	r.framer = http2.NewFramer(nil, r.in)
	r.framer.SetMaxReadFrameSize(maxSize)
	r.framer.SetReuseFrames()
}

// next reads the header of the next frame.
func (r *frameReader) next() (http2.FrameHeader, error) {
	isBuffered := r.in.Buffered() > 0
	h, err := r.framer.ReadFrameHeader()
	if err == nil && !isBuffered {
		r.arrived = time.Now() // once for all frames that have arrived together
	}
	return h, err
}

// read reads frames until the connection fails or the client violates the protocol.
func (c *conn) read() error {
	for first := true; ; first = false {
		h, err := c.frames.next()
		if err != nil {
			return err
		}
		if first && (h.Type != http2.FrameSettings || h.Flags.Has(http2.FlagSettingsAck)) {
			return connError{http2.ErrCodeProtocol, "the first frame must be SETTINGS"}
		}
		f, err := c.frames.framer.ReadFrameForHeader(h)
		if bad, ok := errors.AsType[http2.StreamError](err); ok {
			err = c.receiveBad(h, bad)
		} else if err == nil {
			err = c.receive(f)
		}
		if err != nil {
			return err
		}
		if first {
			c.endPreface()
		}
	}
}

// endPreface removes the deadline for the client's preface. A connection that closes already has
// another deadline.
func (c *conn) endPreface() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase < phaseCloses {
		_ = c.nc.SetReadDeadline(time.Time{})
	}
}

// receiveBad handles a frame that the Framer has rejected.
func (c *conn) receiveBad(h http2.FrameHeader, bad http2.StreamError) error {
	if h.Type == http2.FrameHeaders || h.Type == http2.FrameContinuation {
		// The decoder has not received this fragment, so it would decode later header blocks with a
		// wrong table.
		return connError{http2.ErrCodeProtocol, "a header block is malformed"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streamError(bad.StreamID, bad.Code)
}

// receive handles a frame.
func (c *conn) receive(f http2.Frame) error {
	var complete bool
	switch f := f.(type) {
	case *http2.HeadersFrame:
		if err := c.headers.start(f); err != nil {
			return err
		}
		complete = f.HeadersEnded()
	case *http2.ContinuationFrame:
		c.headers.continuations++
		if err := c.headers.add(f.HeaderBlockFragment(), f.HeadersEnded()); err != nil {
			return err
		}
		complete = f.HeadersEnded()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers.lastFrame = c.frames.arrived
	c.timers.pingAckBy = time.Time{} // any frame shows that the client is alive
	err := c.budget.charge(c.headers.cost())
	if err == nil && c.phase < phaseCloses {
		err = c.dispatch(f, complete)
	}
	if !c.out.isEmpty() {
		c.wakeWriter()
	}
	c.waitForOutput()
	return err
}

// waitForOutput waits until the client reads the frames that were made for it. Otherwise a client
// that reads nothing could make the server collect any number of heads and acknowledgments.
func (c *conn) waitForOutput() {
	for c.out.size > maxOutput && c.phase != phaseDead {
		c.writer.waitUntilDrained()
		c.timers.lastFrame = time.Now()
	}
}

func (c *conn) dispatch(f http2.Frame, blockComplete bool) error {
	switch f := f.(type) {
	case *http2.HeadersFrame, *http2.ContinuationFrame:
		if !blockComplete {
			return nil
		}
		return c.receiveBlock()
	case *http2.DataFrame:
		return c.receiveData(f)
	case *http2.WindowUpdateFrame:
		return c.receiveWindowUpdate(f)
	case *http2.RSTStreamFrame:
		return c.receiveReset(f)
	case *http2.SettingsFrame:
		return c.receiveSettings(f)
	case *http2.PingFrame:
		return c.receivePing(f)
	case *http2.PriorityFrame:
		if f.StreamDep == f.StreamID {
			return connError{http2.ErrCodeProtocol, "a stream depends on itself"}
		}
		return c.budget.chargeUnexplained()
	case *http2.PushPromiseFrame:
		return connError{http2.ErrCodeProtocol, "a client must not send PUSH_PROMISE"}
	default:
		// The frame is a PRIORITY_UPDATE, a GOAWAY (the client then closes the connection), or
		// unknown. An unknown frame must be ignored. Browsers send some unknown frames on purpose.
		return c.budget.chargeUnexplained()
	}
}

func (c *conn) receiveSettings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		if c.timers.settingsAckBy.IsZero() {
			return c.budget.charge(costFrame)
		}
		c.timers.settingsAckBy = time.Time{}
		c.headers.decoder.SetAllowedMaxDynamicTableSize(c.settings.decoderTable)
		c.arm(c.timers.lastFrame.Add(max(c.settings.pingInterval, time.Second)))
		return nil
	}
	if err := f.ForeachSetting(c.applySetting); err != nil {
		return err
	}
	c.out.frame(0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	for _, st := range c.streams {
		st.unblock()
	}
	return c.budget.charge(costSettings + f.NumSettings()/costSettings)
}

func (c *conn) applySetting(s http2.Setting) error {
	if err := s.Valid(); err != nil {
		return err
	}
	switch s.ID {
	case http2.SettingHeaderTableSize:
		c.encoder.encoder.SetMaxDynamicTableSize(s.Val)
	case http2.SettingMaxFrameSize:
		c.sched.frameSize = s.Val
	case http2.SettingInitialWindowSize:
		c.sched.streamWindow = int64(s.Val)
		for _, st := range c.streams {
			if st.window() > maxWindow {
				return connError{http2.ErrCodeFlowControl, "SETTINGS_INITIAL_WINDOW_SIZE makes a window too large"}
			}
		}
	}
	return nil
}

func (c *conn) receivePing(f *http2.PingFrame) error {
	switch {
	case !f.IsAck():
		c.out.ping(true, f.Data)
		return c.budget.chargeUnexplained()
	case f.Data == goAwayPing && c.phase == phaseWarned:
		c.refuse()
		return nil
	}
	return c.budget.charge(costFrame)
}

func (c *conn) receiveReset(f *http2.RSTStreamFrame) error {
	if c.isIdle(f.StreamID) {
		return connError{http2.ErrCodeProtocol, "RST_STREAM for a stream that was never opened"}
	}
	st := c.streams.find(f.StreamID)
	if st != nil && st.err == nil {
		st.fail(errReset)
		return c.budget.charge(costFrame)
	}
	if st != nil {
		st.fail(errReset)
	} else {
		c.cut.end(f.StreamID)
	}
	return c.budget.chargeUnexplained()
}

func (c *conn) receiveWindowUpdate(f *http2.WindowUpdateFrame) error {
	n := int64(f.Increment)
	if f.StreamID == 0 {
		if c.sched.window+n > maxWindow {
			return connError{http2.ErrCodeFlowControl, "WINDOW_UPDATE makes the connection's window too large"}
		}
		c.sched.window += n
		if c.sched.blocked.head != nil {
			c.wakeWriter()
		}
		return c.budget.chargeUnexplained()
	}
	if c.isIdle(f.StreamID) {
		return connError{http2.ErrCodeProtocol, "WINDOW_UPDATE for a stream that was never opened"}
	}
	if st := c.streams.find(f.StreamID); st != nil {
		if st.window()+n > maxWindow {
			return c.streamError(st.id, http2.ErrCodeFlowControl)
		}
		st.credit += n
		st.unblock()
	}
	return c.budget.chargeUnexplained()
}

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
		return st.receiveTrailers(b)
	}
	if b.stream <= c.lastID {
		return c.receiveLateTrailers()
	}
	c.budget.explain(framesPerStream)
	if c.phase == phaseRefuses {
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
	r, err := b.request(c.settings.extendedConnect)
	if err != nil {
		return c.rejectStream(http2.ErrCodeProtocol)
	}
	r.RemoteAddr, r.TLS = c.remote, c.tls
	c.handlers.start(newExchange(c.addStream(b.stream), r, b))
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
	if ok, err := st.receiveBody(f.Data(), n); !ok || !f.StreamEnded() {
		return err
	}
	return st.receiveEnd()
}
