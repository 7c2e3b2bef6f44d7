package transport

import (
	"sync"
	"time"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

// A Link is the end of a stream that a [Conn] writes to. It determines the bytes of its transport,
// and nothing else: Conn calls only one of its methods at a time, except for Interrupt.
type Link interface {
	// WriteFrames writes and flushes frames in order. It may overwrite the slice, but not the
	// frames. It fails if the peer accepts no byte within the write timeout.
	WriteFrames(frames [][]byte) error
	// Interrupt makes a write in progress and all later writes fail at once. Any goroutine may call
	// it, several times. An error means that the link has no way to do that.
	Interrupt() error
	// End ends the stream. If end is Abort, a write has failed or Interrupt was called before.
	// Otherwise End writes trailer, the end of the content coding, and then the end of the stream.
	End(end End, trailer []byte) error
}

// A Conn is the [Sender] of a stream that has a connection or a response of its own. It has the
// state that does not depend on the transport: whether the stream is closed or done, whose turn it
// is to write, and the content coding. A transport embeds a Conn in its Link and calls Init. A Conn
// must not be copied.
type Conn struct {
	// Immutable after Init.
	link    Link
	timeout time.Duration

	coding *StreamCoding // owned by the goroutine whose turn it is

	mu sync.Mutex
	// Guarded by mu.
	waiting []chan struct{} // each is closed when it is the turn of its waiter, or ended is set
	busy    bool            // it is the turn of a goroutine
	broken  bool            // a write has failed
	closed  bool            // Close or Disconnect was called
	ended   bool            // Close no longer uses link, or Disconnect was called
	done    bool
	onDone  func()
	err     error // the result of Close
}

var _ Sender = (*Conn)(nil)

// Init prepares c for a stream that is encoded by e. The zero Encoder is for streams without a
// content coding. The timeout is the time for which Close waits for a Send in progress. A negative
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

// Send implements [Sender].
func (c *Conn) Send(frames [][]byte) error {
	if !c.begin() {
		return connio.ErrSenderClosed
	}
	c.coding.Apply(frames)
	return c.finish(c.link.WriteFrames(frames))
}

// begin waits until the caller may write. It returns false if nothing can be written anymore.
func (c *Conn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.broken {
		return false
	}
	if !c.busy {
		c.busy = true
		return true
	}
	turn := c.queue()
	c.mu.Unlock()
	<-turn
	c.mu.Lock()
	if c.closed || c.broken {
		c.next()
		return false
	}
	return true
}

// queue adds the caller to the waiting goroutines.
func (c *Conn) queue() (turn chan struct{}) {
	turn = make(chan struct{})
	c.waiting = append(c.waiting, turn)
	return turn
}

// next ends the turn of the caller.
func (c *Conn) next() {
	if len(c.waiting) == 0 {
		c.busy, c.waiting = false, nil
		return
	}
	close(c.waiting[0])
	c.waiting = c.waiting[1:]
}

// finish ends a write that has returned err.
func (c *Conn) finish(err error) error {
	c.mu.Lock()
	interrupt := err != nil && !c.closed // otherwise Close or Disconnect ends the stream
	c.broken = c.broken || err != nil
	if interrupt {
		// The next turn may be that of Close, after which the link must not be used.
		c.mu.Unlock()
		_ = c.link.Interrupt() // Close reports the error
		c.setDone()
		c.mu.Lock()
	}
	c.next()
	c.mu.Unlock()
	if err != nil {
		return connio.SendError(err)
	}
	return nil
}

// Close implements [Sender]. The stream is done when Close begins. Further calls return nil, and do
// not wait for the first one.
func (c *Conn) Close(end End) error {
	turn, isFirst := c.queueLast()
	if !isFirst {
		return nil
	}
	c.setDone()
	if end == Abort || !within(c.timeout, turn) {
		end = Abort
		if err := c.link.Interrupt(); err != nil {
			c.end(err)
			return err
		}
		<-turn
	}
	var trailer []byte
	if c.broken {
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
	if !c.ended {
		turn := c.queue() // behind that of Close
		c.mu.Unlock()
		<-turn
		c.mu.Lock()
	}
	return c.err
}

// Disconnect notes that the connection has ended, or is about to be closed by the caller because of
// something that the peer has sent. It returns false if the stream was closed before; then the
// connection must stay open until Wait has returned.
func (c *Conn) Disconnect() bool {
	c.mu.Lock()
	isFirst := !c.closed
	c.closed = true
	c.mu.Unlock()
	if isFirst {
		c.end(nil)
	}
	return isFirst
}

// queueLast closes c, unless it is closed. The caller is the last goroutine that gets a turn.
func (c *Conn) queueLast() (turn <-chan struct{}, isFirst bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false
	}
	c.closed = true
	turn = c.queue()
	if !c.busy {
		c.busy = true
		c.next()
	}
	return turn, true
}

// within waits for at most timeout until turn is closed, and reports whether it is.
func within(timeout time.Duration, turn <-chan struct{}) bool {
	if timeout < 0 {
		<-turn
		return true
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-turn:
		return true
	case <-timer.C:
	}
	select {
	case <-turn:
		return true
	default:
		return false
	}
}

// end notes that nobody will use the link anymore, and that err is the result of Close.
func (c *Conn) end(err error) {
	c.mu.Lock()
	c.ended, c.err = true, err
	for _, turn := range c.waiting {
		close(turn)
	}
	c.waiting = nil
	c.mu.Unlock()
	c.setDone()
}

// setDone calls the function that OnDone has registered, on its first call.
func (c *Conn) setDone() {
	c.mu.Lock()
	f := c.onDone
	c.done, c.onDone = true, nil
	c.mu.Unlock()
	if f != nil {
		f()
	}
}

// OnDone is [Stream].OnDone.
func (c *Conn) OnDone(f func()) {
	c.mu.Lock()
	isDone := c.done
	if !isDone {
		c.onDone = f
	}
	c.mu.Unlock()
	if isDone {
		f()
	}
}
