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

// Connections are the connections of one client, which can be made to fail.
type Connections struct {
	unreachable atomic.Bool // nobody can be reached

	mu sync.Mutex
	// Guarded by mu.
	open      []*Connection
	dialTimes []time.Time // when a connection was asked for
}

// WithConnections returns e with a client of its own, whose connections are the wires.
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
	other := *e
	other.Route = &Route{&s, e.NewClient(&s, e.Variant)}
	return &other, ws
}

func (ws *Connections) add(c net.Conn) *Connection {
	w := &Connection{Conn: c}
	w.remaining.Store(unlimited)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.open = append(ws.open, w)
	return w
}

// Count returns how many connections there have been.
func (ws *Connections) Count() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.open)
}

// ResetAll resets all connections; away: nobody can be reached until back.
func (ws *Connections) ResetAll(away bool) {
	ws.unreachable.Store(away)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.open {
		w.Reset()
	}
}

// ResetAllAfter resets each connection after n more bytes have been read from it. A case that must
// break a stream uses it instead of Last: an HTTP client may dial a connection that it then leaves
// idle, because another one has become free in the meantime.
func (ws *Connections) ResetAllAfter(n int64) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.open {
		w.ResetAfter(n)
	}
}

// DialTimes returns when connections were asked for.
func (ws *Connections) DialTimes() []time.Time {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return slices.Clone(ws.dialTimes)
}

// AllowDials lets connections be opened again.
func (ws *Connections) AllowDials() { ws.unreachable.Store(false) }

// Last returns the connection that was opened last.
func (ws *Connections) Last() *Connection {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.open[len(ws.open)-1]
}

// A Connection is a connection that can be made to fail, in whose reader the fault shows as that of the network.
type Connection struct {
	net.Conn
	remaining atomic.Int64 // how many bytes may come before it is reset
	Reads     atomic.Int64 // that brought something
}

// Read reads until the connection is cut.
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

// unlimited is what is left of a wire that is not to be cut.
const unlimited = 1 << 60

// BytesRead returns how many bytes have been read, while the wire is unlimited.
func (w *Connection) BytesRead() int64 { return unlimited - w.remaining.Load() }

// ResetAfter has the connection reset when n more bytes have come.
func (w *Connection) ResetAfter(n int64) { w.remaining.Store(n) }

// Reset breaks the connection: either end sees that it was reset.
func (w *Connection) Reset() {
	w.remaining.Store(0)
	if c, ok := innermost(w.Conn).(interface{ SetLinger(int) error }); ok {
		_ = c.SetLinger(0) // a connection that is closed can't be reset any more
	}
	_ = w.Close()
}

// Stall makes the network go silent: neither end hears of the other. It is for connections in memory.
func (w *Connection) Stall(stalled bool) { stallConn(w.Conn, stalled) }

func stallConn(c net.Conn, stalled bool) { innermost(c).(interface{ Stall(bool) }).Stall(stalled) }

// innermost returns the connection below those that are wrapped around it.
func innermost(c net.Conn) net.Conn {
	for {
		above, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = above.NetConn()
	}
}

// EndStall ends what stall began: both ends learn that the connection is gone. In a bubble nothing may be left behind that waits for it, also
// where the case has failed.
func (w *Connection) EndStall() {
	w.Stall(false)
	w.Reset()
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// WrapDial returns dial with connections that change prepares.
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

// A SplitConn connection is one whose reads are cut otherwise than the network did. It has one reader.
type SplitConn struct {
	net.Conn
	NextSize func(read int) int // how many bytes a read may bring, given how many came before; nil: any
	Tee      io.Writer          // is told what was read; nil: nobody
	Held     *HeldBytes         // nil: nothing is held back
	read     int
}

// Read reads as much as next says.
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

// HeldBytes holds back what comes, from the first event on, until it is enough, so that what was written in many pieces comes in one.
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
