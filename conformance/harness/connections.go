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

// Connections holds the connections of one client, which a case can break.
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

func (ws *Connections) add(c net.Conn) *Connection {
	w := &Connection{Conn: c}
	w.remaining.Store(unlimited)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.open = append(ws.open, w)
	return w
}

// Count returns the number of connections opened so far.
func (ws *Connections) Count() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.open)
}

// ResetAll resets all connections. If unreachable is true, dials fail until AllowDials is
// called.
func (ws *Connections) ResetAll(unreachable bool) {
	ws.unreachable.Store(unreachable)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.open {
		w.Reset()
	}
}

// ResetAllAfter resets each connection after n more bytes have been read from it. A case that must
// break a stream resets all connections, because the connection that Last returns may be idle: an
// HTTP client may dial a connection and then use an earlier one that has become free in the
// meantime.
func (ws *Connections) ResetAllAfter(n int64) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.open {
		w.ResetAfter(n)
	}
}

// DialTimes returns the times of all dials.
func (ws *Connections) DialTimes() []time.Time {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return slices.Clone(ws.dialTimes)
}

// AllowDials lets dials succeed again.
func (ws *Connections) AllowDials() { ws.unreachable.Store(false) }

// Last returns the connection that was opened last.
func (ws *Connections) Last() *Connection {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.open[len(ws.open)-1]
}

// MaxBytesRead returns the largest number of bytes that were read from one connection. Cases do not
// count the bytes of the connection that Last returns, because that connection may be idle; see
// ResetAllAfter.
func (ws *Connections) MaxBytesRead() int64 {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	var n int64
	for _, w := range ws.open {
		n = max(n, w.bytesRead())
	}
	return n
}

// A Connection is a connection that a case can break. The reader gets the same errors as
// after a real network fault.
type Connection struct {
	net.Conn
	remaining atomic.Int64 // bytes that may be read before the connection is reset
	Reads     atomic.Int64 // reads that returned data
}

// Read resets the connection once the bytes allowed by ResetAfter have been read.
func (w *Connection) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.Reads.Add(1)
	}
	if left := w.remaining.Add(-int64(n)); left <= 0 {
		w.Reset()
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
func (w *Connection) bytesRead() int64 { return unlimited - w.remaining.Load() }

// ResetAfter resets the connection after n more bytes have been read.
func (w *Connection) ResetAfter(n int64) { w.remaining.Store(n) }

// Reset resets the connection, so that both ends get a connection reset error.
func (w *Connection) Reset() {
	w.remaining.Store(0)
	if c, ok := innermost(w.Conn).(interface{ SetLinger(int) error }); ok {
		_ = c.SetLinger(0) // fails if the connection is already closed
	}
	_ = w.Close()
}

// Stall starts or ends a stall, during which no bytes pass in either direction. It works
// only on connections in memory.
func (w *Connection) Stall(stalled bool) { stallConn(w.Conn, stalled) }

func stallConn(c net.Conn, stalled bool) { innermost(c).(interface{ Stall(bool) }).Stall(stalled) }

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
func (w *Connection) EndStall() {
	w.Stall(false)
	w.Reset()
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// WrapDial returns a dial function that wraps each connection in a SplitConn. The function change
// configures each SplitConn.
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
	Tee      io.Writer  // if not nil, receives a copy of all bytes read
	Held     *HeldBytes // if not nil, delays the bytes
	read     int
}

// Read reads at most NextSize bytes.
func (c *SplitConn) Read(p []byte) (int, error) {
	if c.NextSize != nil {
		p = p[:min(len(p), c.NextSize(c.read))]
	}
	var n int
	var err error
	if c.Held != nil {
		n, err = c.Held.readFrom(c.Conn, p)
	} else {
		n, err = c.Conn.Read(p)
	}
	if c.Tee != nil {
		_, _ = c.Tee.Write(p[:n])
	}
	c.read += n
	return n, err
}

// HeldBytes delays the bytes after the first event until their number reaches the field Enough, so
// that many small writes reach the client in one read.
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
