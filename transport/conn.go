package transport

import (
	"sync"
	"time"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

// A Link is the end of a stream that a [Conn] writes to. It only determines the bytes that its
// transport writes. The Conn calls one of its methods at a time, except that it may call Interrupt
// at any time.
type Link interface {
	// WriteFrames writes and flushes frames in order. It may overwrite the slice, but not the
	// frames. It fails if the peer accepts no byte within the write timeout.
	WriteFrames(frames [][]byte) error
	// Interrupt makes a write in progress and all later writes fail at once. Any goroutine may call
	// it, several times. An error means that the link cannot be interrupted.
	Interrupt() error
	// End ends the stream. If end is Abort, a write has failed or Interrupt was called before.
	// Otherwise End writes trailer, the end of the content coding, and then the end of the stream.
	End(end End, trailer []byte) error
}

// A Conn is the [Sender] of a stream that has a connection or a response of its own. It has the
// state that does not depend on the transport: whether the stream is closed or done, whether a
// write is in progress, and the content coding. A transport embeds a Conn in its Link and calls
// Init. A Conn must not be copied.
type Conn struct {
	// Immutable after Init.
	link    Link
	timeout time.Duration

	coding *StreamCoding // owned by the goroutine whose turn it is to write

	mu sync.Mutex
	// Guarded by mu.
	changed   *sync.Cond // nil before the first wait
	turn      uint32     // the number of the write in progress, or of the next one
	lastTurn  uint32     // the number that the next caller of begin will get
	lifecycle lifecycle
	isBroken  bool // a write has failed
	isDone    bool
	onDone    func()
	err       error // the result of Close
}

type lifecycle uint8

const (
	connOpen   lifecycle = iota
	connClosed           // Close or Disconnect was called
	connEnded            // Close no longer uses the link, or Disconnect was called
)

var _ Sender = (*Conn)(nil)

// Init prepares c for a stream that is encoded by e. The zero Encoder is for streams without a
// content coding. timeout limits the time that Close waits for a Send in progress. A negative
// timeout means no limit.
func (c *Conn) Init(link Link, timeout time.Duration, e Encoder) {
	c.link, c.timeout, c.coding = link, timeout, e.NewStreamCoding()
}

// Open writes head, the beginning of the response, and the header of the content coding. It must be
// called before Send. After an error the stream is done.
func (c *Conn) Open(head []byte) {
	if c.begin() {
		_ = c.finish(c.link.WriteFrames([][]byte{append(head, c.coding.Header()...)}))
	}
}

// Send implements [Sender]. Several goroutines may call it; their frames are not mixed.
func (c *Conn) Send(frames [][]byte) error {
	if !c.begin() {
		return connio.ErrSenderClosed
	}
	c.coding.Apply(frames)
	return c.finish(c.link.WriteFrames(frames))
}

// begin waits for the turn of the caller. It returns false if c can write nothing more.
func (c *Conn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lifecycle != connOpen {
		return false
	}
	turn := c.lastTurn
	c.lastTurn++
	for c.turn != turn {
		c.wait()
	}
	mayWrite := c.lifecycle == connOpen && !c.isBroken
	if !mayWrite {
		c.next()
	}
	return mayWrite
}

// next ends the turn of the caller.
func (c *Conn) next() {
	c.turn++
	c.signal()
}

// finish ends the turn of the caller, whose write has returned err.
func (c *Conn) finish(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.next()
	if err == nil {
		return nil
	}
	c.isBroken = true
	if c.lifecycle == connOpen {
		// Interrupt the link now: the next turn may belong to Close, and after Close the link must
		// not be used.
		c.mu.Unlock()
		_ = c.link.Interrupt() // Close returns the error
		c.setDone()
		c.mu.Lock()
	}
	return connio.SendError(err)
}

// Close implements [Sender]. The stream is done when Close begins. Further calls return nil, and do
// not wait for the first one.
func (c *Conn) Close(end End) error {
	if !c.close() {
		return nil
	}
	c.setDone()
	if end == Abort || !c.awaitTurn(c.timeout) {
		end = Abort
		if err := c.link.Interrupt(); err != nil {
			c.end(err)
			return err
		}
		c.awaitTurn(-1)
	}
	var trailer []byte
	if c.isBroken {
		end = Abort
	}
	if end != Abort {
		trailer = c.coding.Trailer()
	}
	err := c.link.End(end, trailer)
	c.end(err)
	return err
}

// Wait waits until the first call of Close has ended, and returns its error. Close must have been
// called.
func (c *Conn) Wait() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.lifecycle != connEnded {
		c.wait()
	}
	return c.err
}

// Disconnect records that the connection has ended, or that the caller is about to close it because
// of something that the peer has sent. It returns false if the stream was closed before. In that
// case the connection must stay open until Wait has returned.
func (c *Conn) Disconnect() bool {
	isFirst := c.close()
	if isFirst {
		c.end(nil)
		c.setDone()
	}
	return isFirst
}

// close makes further writes fail. It returns false if c was closed before.
func (c *Conn) close() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	isFirst := c.lifecycle == connOpen
	if isFirst {
		c.lifecycle = connClosed
	}
	return isFirst
}

// awaitTurn waits for the turn after the last write, and reports whether it has come within
// timeout. A negative timeout means no limit.
func (c *Conn) awaitTurn(timeout time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	isLate := false
	if c.turn != c.lastTurn && timeout >= 0 {
		timer := time.AfterFunc(timeout, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			isLate = true
			c.signal()
		})
		defer timer.Stop()
	}
	for c.turn != c.lastTurn && !isLate {
		c.wait()
	}
	return c.turn == c.lastTurn
}

// end records that the link is no longer used, and that err is the result of Close.
func (c *Conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lifecycle, c.err = connEnded, err
	c.signal()
}

// wait waits for the next call of signal. It releases mu while it waits.
func (c *Conn) wait() {
	if c.changed == nil {
		c.changed = sync.NewCond(&c.mu)
	}
	c.changed.Wait()
}

func (c *Conn) signal() {
	if c.changed != nil {
		c.changed.Broadcast()
	}
}

// setDone calls the function that OnDone has registered. Only the first call has an effect.
func (c *Conn) setDone() {
	c.mu.Lock()
	f := c.onDone
	c.isDone, c.onDone = true, nil
	c.mu.Unlock()
	if f != nil {
		f()
	}
}

// OnDone implements the field OnDone of a [Stream].
func (c *Conn) OnDone(f func()) {
	c.mu.Lock()
	isDone := c.isDone
	if !isDone {
		c.onDone = f
	}
	c.mu.Unlock()
	if isDone {
		f()
	}
}
