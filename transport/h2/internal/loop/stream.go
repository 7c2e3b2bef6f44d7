package loop

import (
	"cmp"
	"errors"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/net/http2"
)

// A stream is small, because a million of them may be idle. So most of the data that only some
// streams need is behind pointers. The fields of a stream are guarded by the connection's mutex,
// except for the immutable ones.
type stream struct {
	// Immutable after construction.
	c  *conn
	id uint32

	remoteClosed bool // the client has sent END_STREAM
	ready        bool // the stream is in conn.ready
	stepping     bool // step is running
	watched      bool // the response is a watch
	detached     bool // the watch outlives its handler
	done         bool // the watch has ended or Watch.Close was called

	// credit is the send window minus the client's initial window size, which may change.
	credit int64
	next   *stream   // the next stream in conn.ready
	step   func()    // the function to call when the stream may send; see Watch.Go
	out    *outgoing // data to send; nil if there is none
	ex     *exchange // the request that a handler is serving; nil if none is
	err    error     // the reason why nothing more can be sent; nil while the stream is open

	// The next fields belong to a watch.
	onDone func()
	stall  time.Duration // the timeout for a client that opens no window; zero means no limit
}

// A streamList holds open streams in the order of their numbers. It takes a third of the memory of
// a map, and its slowest operation, to remove a stream, moves at most a few KiB.
type streamList []*stream

func (l streamList) search(id uint32) (int, bool) {
	return slices.BinarySearchFunc(l, id, func(st *stream, id uint32) int { return cmp.Compare(st.id, id) })
}

// find returns the stream with the number id, or nil if it is not open.
func (l streamList) find(id uint32) *stream {
	if i, ok := l.search(id); ok {
		return l[i]
	}
	return nil
}

func (l *streamList) remove(st *stream) {
	if i, ok := l.search(st.id); ok {
		*l = slices.Delete(*l, i, i+1)
	}
}

// outgoing is data that waits for other streams, for space in the output, or for a window.
type outgoing struct {
	frames [][]byte
	shared bool          // the frames no longer change
	end    bool          // END_STREAM follows
	done   chan struct{} // closed when nothing is left or the stream has failed; may be nil
}

// The errors of streams.
var (
	errClosed    = errors.New("http2: the stream is closed")
	errConn      = errors.New("http2: the client has disconnected")
	errReset     = errors.New("http2: the client has reset the stream")
	errStalled   = &net.OpError{Op: "write", Net: "http2", Err: os.ErrDeadlineExceeded}
	errAborted   = errors.New("http2: the handler has aborted the stream")
	errMalformed = errors.New("http2: the client has violated the protocol")
)

// window returns the number of bytes that the stream may send. It may be negative.
func (st *stream) window() int64 { return st.c.peerWindow + st.credit }

// quantum is the number of bytes that a stream may send before the next stream may send.
const quantum = 16 << 10

// send sends frames, and then END_STREAM if end is true. It keeps the data that cannot be sent at
// once. If wait is true, send returns when everything has been sent. If wait is false or shared is
// true, the frames must never change again. Large shared frames are written without a copy.
func (st *stream) send(frames [][]byte, end, wait, shared bool) error {
	st.c.mu.Lock()
	defer st.c.mu.Unlock()
	return st.sendLocked(frames, end, wait, shared)
}

// sendLocked is send for a caller that holds the mutex. It releases the mutex while it waits.
func (st *stream) sendLocked(frames [][]byte, end, wait, shared bool) error {
	c := st.c
	if st.err != nil {
		return st.err
	}
	o := st.out
	if o == nil {
		// If other streams are waiting, this one must get in line behind them.
		now := outgoing{frames: frames, shared: shared, end: end}
		if (st.stepping || c.ready.head == nil) && st.emit(&now) {
			c.wakeWriter()
			return nil
		}
		o = &outgoing{frames: append([][]byte(nil), now.frames...), shared: shared, end: end}
		st.out = o
	} else {
		o.frames = append(o.frames, frames...)
		o.shared = o.shared && shared
		o.end = o.end || end
	}
	c.enqueue(st)
	if !wait {
		return nil
	}
	if o.done == nil {
		o.done = make(chan struct{})
	}
	done := o.done
	c.mu.Unlock()
	<-done
	c.mu.Lock()
	if o.end && st.err == errClosed {
		return nil
	}
	return st.err
}

// emit moves data to the output until a window, the output or the quantum is exhausted. It reports
// whether nothing of o is left; END_STREAM has then been sent too.
func (st *stream) emit(o *outgoing) bool {
	c := st.c
	left := 0
	for _, f := range o.frames {
		left += len(f)
	}
	for budget := quantum; left > 0; {
		n := min(int64(left), st.window(), c.sendWindow, int64(c.peerFrame), int64(budget))
		if n <= 0 || c.out.room() <= 0 {
			return false
		}
		left -= int(n)
		budget -= int(n)
		last := left == 0 && o.end
		c.out.frame(int(n), http2.FrameData, endFlag(last), st.id)
		o.take(&c.out, int(n), c.writer.SupportsVector())
		st.credit -= n
		c.sendWindow -= n
		c.endStall(st)
		c.budget.explain(framesPerData + n/bytesPerFrame)
		if last {
			st.closeLocal()
			return true
		}
	}
	if o.end {
		c.out.frame(0, http2.FrameData, http2.FlagDataEndStream, st.id)
		st.closeLocal()
	}
	return true
}

func endFlag(end bool) http2.Flags {
	if end {
		return http2.FlagDataEndStream
	}
	return 0
}

// take moves n bytes to out.
func (o *outgoing) take(out *output, n int, vector bool) {
	for n > 0 {
		f := o.frames[0]
		m := min(len(f), n)
		if vector && o.shared && m >= largeFrame {
			out.reference(f[:m])
		} else {
			out.copy(f[:m])
		}
		n -= m
		if m < len(f) {
			o.frames[0] = f[m:]
		} else {
			o.frames = o.frames[1:]
		}
	}
	for len(o.frames) > 0 && len(o.frames[0]) == 0 {
		o.frames = o.frames[1:]
	}
}

// closeLocal ends the stream after END_STREAM was sent.
func (st *stream) closeLocal() {
	if !st.remoteClosed {
		// The client need not send the rest of its request (RFC 9113, section 8.1).
		st.reset(http2.ErrCodeNo)
	}
	st.fail(errClosed)
}

// reset sends RST_STREAM.
func (st *stream) reset(code http2.ErrCode) {
	c := st.c
	c.out.reset(st.id, code)
	if st.remoteClosed {
		return
	}
	window := c.settings.streamWindow
	if st.ex != nil {
		window = st.ex.body.window.open
	}
	c.cut.add(cutStream{st.id, window}, int(c.settings.streams))
}

// abort sends RST_STREAM and ends the stream.
func (st *stream) abort(code http2.ErrCode, err error) {
	if st.err != nil {
		return
	}
	c := st.c
	st.reset(code)
	if c.settings.countError != nil {
		c.settings.countError("stream_" + code.String())
	}
	st.fail(err)
	c.wakeWriter()
}

// fail ends the stream without sending RST_STREAM.
func (st *stream) fail(err error) {
	if st.err != nil {
		return
	}
	c := st.c
	st.err = err
	if o := st.out; o != nil {
		st.out = nil
		if o.done != nil {
			close(o.done)
		}
	}
	c.endStall(st)
	if f := st.step; f != nil {
		st.step = nil
		go f() // f finds out that the stream has ended
	}
	if st.ex != nil {
		st.ex.fail(err)
	}
	if st.watched {
		st.finishWatch()
	}
	c.removeStream(st)
}

// timeout returns the time for which the client may keep the stream's window empty; zero means no
// limit.
func (st *stream) timeout() time.Duration {
	if st.watched {
		return st.stall
	}
	return st.c.settings.stallTimeout
}
