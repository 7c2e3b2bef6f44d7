package fault

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// A proxiedConn joins a connection from a client to a connection to the server.
type proxiedConn struct {
	// Immutable after construction.
	proxy  *Proxy
	number int
	client net.Conn

	// server is nil until run sets it. Until then, mu guards server and planned. Afterwards both
	// are immutable.
	server  net.Conn
	planned Fault

	mu sync.Mutex
	// Guarded by mu.
	// active is the fault that is in effect now. If its Kind is None, bytes are forwarded.
	active   Fault
	due      bool  // planned.Wait has passed
	started  bool  // the planned fault has started, was canceled or was replaced
	recorded bool  // the active fault has been reported as an injection
	passed   int64 // number of bytes from the server that were forwarded
	closed   bool  // both connections are closed
	// changed is closed when another fault becomes active, or when the connections are closed.
	changed chan struct{}
	timers  []*time.Timer
}

func newProxiedConn(p *Proxy, client net.Conn, number int) *proxiedConn {
	return &proxiedConn{proxy: p, number: number, client: client, changed: make(chan struct{})}
}

// run forwards bytes until both directions have ended.
func (pc *proxiedConn) run(server net.Conn) {
	pc.mu.Lock()
	if pc.closed { // the proxy was closed during the dial
		pc.mu.Unlock()
		_ = server.Close()
		return
	}
	pc.server = server
	if pc.planned.Kind != None && pc.planned.Wait > 0 {
		pc.timers = append(pc.timers, time.AfterFunc(pc.planned.Wait, pc.startIfDue))
	}
	now := pc.planned.Wait <= 0
	pc.mu.Unlock()
	if now {
		pc.startIfDue()
	}
	toServer := make(chan struct{})
	go func() { // run waits for this goroutine below
		defer close(toServer)
		pc.pump(pc.server, pc.client, false)
	}()
	pc.pump(pc.client, pc.server, true)
	<-toServer
	pc.close(false)
}

// pump forwards bytes from src to dst. fromServer reports whether src is the server.
func (pc *proxiedConn) pump(dst, src net.Conn, fromServer bool) {
	buf := make([]byte, 16<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 && !pc.forward(dst, buf[:n], fromServer) {
			return
		}
		if err != nil {
			pc.propagateClose(dst, err)
			return
		}
	}
}

// propagateClose ends a direction after a read or write has failed with err: it half-closes dst
// after io.EOF, and resets both connections after any other error. A Stall delays this, and
// HalfOpen prevents it.
func (pc *proxiedConn) propagateClose(dst net.Conn, err error) {
	for {
		active, changed, closed := pc.current()
		switch {
		case closed:
			return
		case active.Kind == Stall:
			<-changed
			continue
		case active.Kind == HalfOpen:
			// Do not close the other end: it must detect the fault by a timeout.
			return
		case !errors.Is(err, io.EOF):
			pc.close(true)
			return
		}
		if c, ok := dst.(interface{ CloseWrite() error }); ok {
			_ = c.CloseWrite() // fails only if that end is already closed
			return
		}
		pc.close(false)
		return
	}
}

// current returns the active fault, a channel that is closed when that fault changes, and whether
// the connection is closed.
func (pc *proxiedConn) current() (active Fault, changed chan struct{}, closed bool) {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	return pc.active, pc.changed, pc.closed
}

// forward writes p to dst as the active fault allows. It returns false if the connection is
// closed.
func (pc *proxiedConn) forward(dst net.Conn, p []byte, fromServer bool) bool {
	for len(p) > 0 {
		active, changed, closed := pc.current()
		n := len(p)
		switch {
		case closed:
			return false
		case active.Kind == HalfOpen:
			return true
		case active.Kind == Stall:
			pc.record()
			<-changed
			continue
		case active.Kind == Drip:
			pc.record()
			n = min(n, max(active.ChunkSize, 1))
			fallthrough
		case active.Kind == Latency:
			pc.record()
			if !pc.wait(active.ChunkDelay, changed) {
				continue
			}
		case fromServer:
			n = pc.allowance(n)
		}
		if n == 0 {
			pc.startIfDue()
			continue
		}
		if _, err := dst.Write(p[:n]); err != nil {
			pc.propagateClose(dst, err)
			return false
		}
		p = p[n:]
		if fromServer {
			pc.countPassed(n)
		}
	}
	return true
}

// wait sleeps for d. It returns false if the active fault changes first.
func (pc *proxiedConn) wait(d time.Duration, changed chan struct{}) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-changed:
		return false
	}
}

// allowance returns how many of the next n bytes from the server may pass before the
// planned fault starts. Zero means that the planned fault is due now.
func (pc *proxiedConn) allowance(n int) int {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	if pc.planned.Kind == None || pc.started || !pc.due {
		return n
	}
	return int(min(int64(n), max(0, pc.planned.ServerBytes-pc.passed)))
}

// countPassed counts n forwarded bytes from the server, and starts the planned fault if it
// is due.
func (pc *proxiedConn) countPassed(n int) {
	pc.mu.Lock()
	pc.passed += int64(n)
	due := pc.due && !pc.started && pc.passed >= pc.planned.ServerBytes
	pc.mu.Unlock()
	if due {
		pc.startIfDue()
	}
}

// startIfDue starts the planned fault if enough bytes have passed and it has not started yet. It
// must not be called before planned.Wait has passed.
func (pc *proxiedConn) startIfDue() {
	pc.mu.Lock()
	pc.due = true
	f := pc.planned
	started := !pc.started && f.Kind != None && pc.passed >= f.ServerBytes && pc.startLocked(f)
	pc.mu.Unlock()
	if started {
		pc.takeEffect(f)
	}
}

// start makes f the active fault.
func (pc *proxiedConn) start(f Fault) {
	pc.mu.Lock()
	started := pc.startLocked(f)
	pc.mu.Unlock()
	if started {
		pc.takeEffect(f)
	}
}

// startLocked is like start, but does not call takeEffect. It reports whether f is active. The
// caller must hold mu.
func (pc *proxiedConn) startLocked(f Fault) bool {
	if pc.server == nil {
		pc.planned = f // run starts it when the server is connected
	}
	if pc.closed || pc.server == nil || pc.active.Kind == HalfOpen {
		return false
	}
	pc.started, pc.recorded = true, false
	pc.setLocked(f)
	if f.Duration > 0 {
		current := pc.changed
		pc.timers = append(pc.timers, time.AfterFunc(f.Duration, func() { pc.stopIfUnchanged(current) }))
	}
	return true
}

// takeEffect closes the connections or reports f, if f is a fault that does so as soon as it is
// active.
func (pc *proxiedConn) takeEffect(f Fault) {
	switch f.Kind {
	case Reset, Cut:
		pc.record()
		pc.close(f.Kind == Reset)
	case HalfOpen:
		pc.record()
	}
}

// record reports the active fault as an injection, unless it has already been reported.
func (pc *proxiedConn) record() {
	pc.mu.Lock()
	b := Injection{pc.active.Kind, pc.number, pc.passed}
	first := !pc.recorded && b.Kind != None
	pc.recorded = true
	pc.mu.Unlock()
	if first {
		pc.proxy.recordInjection(b)
	}
}

// stop ends the active fault, unless it is HalfOpen, which cannot be undone.
func (pc *proxiedConn) stop() {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	pc.stopLocked()
}

// stopIfUnchanged is called when the Duration of a fault has passed. It ends the active fault if
// pc.changed is still the given channel. Otherwise another fault is active now.
func (pc *proxiedConn) stopIfUnchanged(changed chan struct{}) {
	pc.mu.Lock()
	defer pc.mu.Unlock()
	if pc.changed == changed {
		pc.stopLocked()
	}
}

// stopLocked is like stop. The caller must hold mu.
func (pc *proxiedConn) stopLocked() {
	if !pc.closed && pc.active.Kind != HalfOpen {
		pc.setLocked(Fault{})
	}
}

// heal ends the active fault and cancels the planned one.
func (pc *proxiedConn) heal() {
	pc.mu.Lock()
	pc.started = true
	pc.mu.Unlock()
	pc.stop()
}

// setLocked makes f the active fault and wakes all waiters. The caller must hold mu.
func (pc *proxiedConn) setLocked(f Fault) {
	pc.active = f
	close(pc.changed)
	pc.changed = make(chan struct{})
}

// close closes both connections. Only the first call has an effect.
func (pc *proxiedConn) close(withReset bool) {
	pc.mu.Lock()
	if pc.closed {
		pc.mu.Unlock()
		return
	}
	pc.closed = true
	close(pc.changed)
	for _, t := range pc.timers {
		t.Stop()
	}
	conns := []net.Conn{pc.client, pc.server}
	pc.mu.Unlock()
	for _, c := range conns {
		switch {
		case c == nil:
		case withReset:
			reset(c)
		default:
			_ = c.Close()
		}
	}
}

// reset closes c so that its peer sees a TCP reset.
func reset(c net.Conn) {
	if c, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = c.SetLinger(0) // fails only if the connection is already closed
	}
	_ = c.Close()
}
