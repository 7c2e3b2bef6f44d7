package harness

import (
	"bytes"
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Connections holds the connections of one client. A case can break them.
type Connections struct {
	unreachable atomic.Bool // if true, dials fail

	mu sync.Mutex
	// Guarded by mu.
	open      []*Connection
	dialTimes []time.Time // the times of all dials, including failed dials
}

// WithConnections returns a copy of e with a new client, and the connections that this client
// opens.
func (e *Env) WithConnections() (*Env, *Connections) {
	ws, s := &Connections{}, *e.Instance
	dial := s.Network.Dial
	s.Network.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		ws.mu.Lock()
		ws.dialTimes = append(ws.dialTimes, time.Now())
		ws.mu.Unlock()
		if ws.unreachable.Load() {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return ws.add(c), nil
	}
	return e.WithRoute(&Route{&s, e.NewClient(&s, e.Variant)}), ws
}

func (c *Connections) add(conn net.Conn) *Connection {
	w := &Connection{Conn: conn}
	w.remaining.Store(unlimited)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = append(c.open, w)
	return w
}

// Count returns the number of connections opened so far.
func (c *Connections) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// ResetAll resets all connections. If unreachable is true, dials fail until AllowDials is
// called.
func (c *Connections) ResetAll(unreachable bool) {
	c.unreachable.Store(unreachable)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.open {
		w.Reset()
	}
}

// ResetAllAfter resets each connection after n more bytes have been read from it. A case that must
// break a stream resets all connections, because the connection that Last returns may be idle: an
// HTTP client may dial a connection and then use an earlier one that has become free in the
// meantime.
func (c *Connections) ResetAllAfter(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.open {
		w.ResetAfter(n)
	}
}

// DialTimes returns the times of all dials.
func (c *Connections) DialTimes() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.dialTimes)
}

// AllowDials lets dials succeed again.
func (c *Connections) AllowDials() { c.unreachable.Store(false) }

// Last returns the connection that was opened last.
func (c *Connections) Last() *Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[len(c.open)-1]
}

// MaxBytesRead returns the largest number of bytes that were read from one connection. It considers
// all connections, because the newest one may be idle; see ResetAllAfter.
func (c *Connections) MaxBytesRead() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var n int64
	for _, w := range c.open {
		n = max(n, w.bytesRead())
	}
	return n
}

// A Connection is a connection that a case can break. The reader gets the same errors as
// after a real network fault.
type Connection struct {
	net.Conn
	remaining atomic.Int64 // bytes that may be read before the connection is reset
	Reads     atomic.Int64 // number of reads that returned data
	// stalled is closed when the stall of a TCP connection ends. It is nil without a stall.
	stalled atomic.Pointer[chan struct{}]
}

// Read resets the connection once the bytes allowed by ResetAfter have been read.
func (c *Connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if stalled := c.stalled.Load(); stalled != nil {
		<-*stalled
	}
	if n > 0 {
		c.Reads.Add(1)
	}
	if left := c.remaining.Add(-int64(n)); left <= 0 {
		c.Reset()
		if n = max(0, n+int(left)); n == 0 {
			return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		}
		return n, nil
	}
	return n, err
}

// unlimited is the initial value of Connection.remaining. It allows more bytes than any
// case reads.
const unlimited = 1 << 60

// bytesRead returns the number of bytes read. The result is meaningless after a call of
// ResetAfter.
func (c *Connection) bytesRead() int64 { return unlimited - c.remaining.Load() }

// ResetAfter resets the connection after n more bytes have been read.
func (c *Connection) ResetAfter(n int64) { c.remaining.Store(n) }

// Reset resets the connection, so that both ends get a connection reset error.
func (c *Connection) Reset() {
	c.remaining.Store(0)
	if tcp, ok := innermost(c.Conn).(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0) // fails if the connection is already closed
	}
	_ = c.Close()
}

// Stall starts or ends a stall, during which no bytes pass in either direction. On a TCP connection
// a stall holds back only the bytes that are read.
func (c *Connection) Stall(stalled bool) {
	if inMemory, ok := innermost(c.Conn).(interface{ Stall(bool) }); ok {
		inMemory.Stall(stalled)
		return
	}
	if stalled {
		c.stalled.Store(new(make(chan struct{})))
	} else if old := c.stalled.Swap(nil); old != nil {
		close(*old)
	}
}

// innermost returns the connection inside all wrappers of c.
func innermost(c net.Conn) net.Conn {
	for {
		above, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = above.NetConn()
	}
}

// EndStall ends a stall and resets the connection, so that both ends get an error. Call it even
// if the case has failed: a synctest bubble cannot end while goroutines wait for a stalled
// connection.
func (c *Connection) EndStall() {
	c.Stall(false)
	c.Reset()
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// WrapDial returns a dial function that wraps each connection in a SplitConn. change configures
// each SplitConn.
func WrapDial(dial dialFunc, change func(*SplitConn)) dialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		p := &SplitConn{Conn: c}
		change(p)
		return p, nil
	}
}

// A SplitConn changes how the bytes of a connection are divided into reads. Only one
// goroutine may read it.
type SplitConn struct {
	net.Conn
	// NextSize returns the maximum size of the next read, given the bytes read so far. If nil,
	// reads are not limited.
	NextSize func(read int) int
	// Pause is the time before each read but the first, so that a client in another process gets
	// the bytes of each read by themselves.
	Pause time.Duration
	Tee   io.Writer  // if not nil, receives a copy of all bytes read
	Held  *HeldBytes // if not nil, delays the bytes
	read  int
}

// Read reads at most NextSize bytes.
func (s *SplitConn) Read(p []byte) (int, error) {
	if s.Pause > 0 && s.read > 0 {
		<-time.After(s.Pause)
	}
	if s.NextSize != nil {
		p = p[:min(len(p), s.NextSize(s.read))]
	}
	var n int
	var err error
	if s.Held != nil {
		n, err = s.Held.readFrom(s.Conn, p)
	} else {
		n, err = s.Conn.Read(p)
	}
	if s.Tee != nil {
		_, _ = s.Tee.Write(p[:n])
	}
	s.read += n
	return n, err
}

// HeldBytes delays the bytes after the first event until Enough bytes have arrived, so that many
// small writes reach the client in one read.
type HeldBytes struct {
	Enough int

	begun bool
	buf   []byte
}

func (h *HeldBytes) readFrom(c net.Conn, p []byte) (int, error) {
	if !h.begun {
		n, err := c.Read(p)
		h.begun = bytes.Contains(p[:n], []byte(`{"type"`))
		return n, err
	}
	for h.Enough > 0 {
		more := make([]byte, h.Enough)
		n, err := c.Read(more)
		if err != nil {
			return 0, err
		}
		h.buf = append(h.buf, more[:n]...)
		h.Enough -= n
	}
	if len(h.buf) == 0 {
		return c.Read(p)
	}
	n := copy(p, h.buf)
	h.buf = h.buf[n:]
	return n, nil
}
