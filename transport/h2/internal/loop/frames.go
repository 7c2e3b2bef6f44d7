package loop

import (
	"errors"
	"time"

	"golang.org/x/net/http2"
)

// read reads frames until the connection fails or the client violates the protocol.
func (c *conn) read() error {
	for first := true; ; first = false {
		isBuffered := c.in.Buffered() > 0
		h, err := c.framer.ReadFrameHeader()
		if err != nil {
			return err
		}
		if !isBuffered {
			c.arrived = time.Now() // once for all frames that have arrived together
		}
		if first && (h.Type != http2.FrameSettings || h.Flags.Has(http2.FlagSettingsAck)) {
			return connError{http2.ErrCodeProtocol, "the first frame must be SETTINGS"}
		}
		f, err := c.framer.ReadFrameForHeader(h)
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
	if !c.closing && !c.dead {
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
	c.lastFrame = c.arrived
	c.timers.pingAckBy = time.Time{} // any frame shows that the client is alive
	err := c.budget.charge(c.headers.cost())
	if err == nil && !c.closing && !c.dead {
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
	for c.out.size > maxOutput && !c.dead {
		c.waits = true
		c.drained.Wait()
		c.waits = false
		c.lastFrame = time.Now()
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
		c.armAt(c.lastFrame.Add(max(c.settings.pingInterval, time.Second)))
		return nil
	}
	if err := f.ForeachSetting(c.applySetting); err != nil {
		return err
	}
	c.out.frame(0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	for _, st := range c.streams {
		c.unblock(st)
	}
	return c.budget.charge(costSettings + f.NumSettings()/costSettings)
}

func (c *conn) applySetting(s http2.Setting) error {
	if err := s.Valid(); err != nil {
		return err
	}
	switch s.ID {
	case http2.SettingHeaderTableSize:
		c.encoder.SetMaxDynamicTableSize(s.Val)
	case http2.SettingMaxFrameSize:
		c.peerFrame = s.Val
	case http2.SettingInitialWindowSize:
		c.peerWindow = int64(s.Val)
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
	case f.Data == goAwayPing && c.goAwayState == goAwayWarned:
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
		if c.sendWindow+n > maxWindow {
			return connError{http2.ErrCodeFlowControl, "WINDOW_UPDATE makes the connection's window too large"}
		}
		c.sendWindow += n
		if c.blocked.head != nil {
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
		c.unblock(st)
	}
	return c.budget.chargeUnexplained()
}
