package cases

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// wires are the connections of one client, which can be made to fail.
type wires struct {
	away atomic.Bool // nobody can be reached

	mu sync.Mutex
	// Guarded by mu.
	all   []*wire
	tried []time.Time // when a connection was asked for
}

// wired returns e with a client of its own, whose connections are the wires.
func (e *env) wired() (*env, *wires) {
	ws, s := &wires{}, *e.Instance
	dial := s.Network.Dial
	s.Network.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		ws.mu.Lock()
		ws.tried = append(ws.tried, time.Now())
		ws.mu.Unlock()
		if ws.away.Load() {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return ws.add(c), nil
	}
	other := *e
	other.site = &site{&s, e.newClient(&s, e.way)}
	return &other, ws
}

func (ws *wires) add(c net.Conn) *wire {
	w := &wire{Conn: c}
	w.left.Store(unlimited)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.all = append(ws.all, w)
	return w
}

// count returns how many connections there have been.
func (ws *wires) count() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.all)
}

// cut resets all connections; away: nobody can be reached until back.
func (ws *wires) cut(away bool) {
	ws.away.Store(away)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.all {
		w.reset()
	}
}

// dials returns when connections were asked for.
func (ws *wires) dials() []time.Time {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return slices.Clone(ws.tried)
}

func (ws *wires) back() { ws.away.Store(false) }

func (ws *wires) last() *wire {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.all[len(ws.all)-1]
}

// A wire is a connection that can be made to fail, in whose reader the fault shows as that of the network.
type wire struct {
	net.Conn
	left  atomic.Int64 // how many bytes may come before it is reset
	reads atomic.Int64 // that brought something
}

// Read reads until the connection is cut.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.reads.Add(1)
	}
	if left := w.left.Add(-int64(n)); left <= 0 {
		w.reset()
		if n = max(0, n+int(left)); n == 0 {
			return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		}
		return n, nil
	}
	return n, err
}

// unlimited is what is left of a wire that is not to be cut.
const unlimited = 1 << 60

// taken returns how many bytes have been read, while the wire is unlimited.
func (w *wire) taken() int64 { return unlimited - w.left.Load() }

// cutAfter has the connection reset when n more bytes have come.
func (w *wire) cutAfter(n int64) { w.left.Store(n) }

// reset breaks the connection: either end sees that it was reset.
func (w *wire) reset() {
	w.left.Store(0)
	if c, ok := bottom(w.Conn).(interface{ SetLinger(int) error }); ok {
		_ = c.SetLinger(0) // a connection that is closed can't be reset any more
	}
	_ = w.Close()
}

// stall makes the network go silent: neither end hears of the other. It is for connections in memory.
func (w *wire) stall(stalled bool) { stall(w.Conn, stalled) }

func stall(c net.Conn, stalled bool) { bottom(c).(interface{ Stall(bool) }).Stall(stalled) }

// bottom returns the connection below those that are wrapped around it.
func bottom(c net.Conn) net.Conn {
	for {
		above, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return c
		}
		c = above.NetConn()
	}
}

// found ends what stall began: both ends learn that the connection is gone. In a bubble nothing may be left behind that waits for it, also
// where the case has failed.
func (w *wire) found() {
	w.stall(false)
	w.reset()
}
