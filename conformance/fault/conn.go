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
	due      bool // planned.Wait has passed
	started  bool // the planned fault has started, was canceled or was replaced
	recorded bool // the active fault has been reported as an injection
	// changed is closed when another fault becomes active, or when the connections are closed.
	changed chan struct{}
	timers  []*time.Timer
	passed  int64 // number of bytes from the server that were forwarded
	closed  bool  // both connections are closed
}

func newProxiedConn(p *Proxy, client net.Conn, number int) *proxiedConn {
	return &proxiedConn{
		proxy: p, number: number, client: client, changed: make(chan struct{}),
	}
}

// run forwards bytes until both directions have ended.
func (p *proxiedConn) run(server net.Conn) {
	p.mu.Lock()
	if p.closed { // the proxy was closed during the dial
		p.mu.Unlock()
		_ = server.Close()
		return
	}
	p.server = server
	if p.planned.Kind != None && p.planned.Wait > 0 {
		p.timers = append(p.timers, time.AfterFunc(p.planned.Wait, p.startIfDue))
	}
	now := p.planned.Wait <= 0
	p.mu.Unlock()
	if now {
		p.startIfDue()
	}
	toServer := make(chan struct{})
	go func() { // run waits for this goroutine below
		defer close(toServer)
		p.pump(p.server, p.client, false)
	}()
	p.pump(p.client, p.server, true)
	<-toServer
	p.close(false)
}

// pump forwards bytes from src to dst. fromServer reports whether src is the server.
func (p *proxiedConn) pump(dst, src net.Conn, fromServer bool) {
	buf := make([]byte, 16<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 && !p.forward(dst, buf[:n], fromServer) {
			return
		}
		if err != nil {
			p.propagateClose(dst, err)
			return
		}
	}
}

// propagateClose ends a direction after a read or write has failed with err: it half-closes dst
// after io.EOF, and resets both connections after any other error. A Stall delays this, and
// HalfOpen prevents it.
func (p *proxiedConn) propagateClose(dst net.Conn, err error) {
	for {
		active, changed, closed := p.current()
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
			p.close(true)
			return
		}
		if c, ok := dst.(interface{ CloseWrite() error }); ok {
			_ = c.CloseWrite() // fails only if that end is already closed
			return
		}
		p.close(false)
		return
	}
}

// current returns the active fault, a channel that is closed when that fault changes, and whether
// the connection is closed.
func (p *proxiedConn) current() (active Fault, changed chan struct{}, closed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.active, p.changed, p.closed
}

// forward writes data to dst as the active fault allows. It returns false if the connection is
// closed.
func (p *proxiedConn) forward(dst net.Conn, data []byte, fromServer bool) bool {
	for len(data) > 0 {
		active, changed, closed := p.current()
		n := len(data)
		switch {
		case closed:
			return false
		case active.Kind == HalfOpen:
			return true
		case active.Kind == Stall:
			p.record()
			<-changed
			continue
		case active.Kind == Drip:
			p.record()
			n = min(n, max(active.ChunkSize, 1))
			fallthrough
		case active.Kind == Latency:
			p.record()
			if !p.wait(active.ChunkDelay, changed) {
				continue
			}
		case fromServer:
			n = p.allowance(n)
		}
		if n == 0 {
			p.startIfDue()
			continue
		}
		if _, err := dst.Write(data[:n]); err != nil {
			p.propagateClose(dst, err)
			return false
		}
		data = data[n:]
		if fromServer {
			p.countPassed(n)
		}
	}
	return true
}

// wait sleeps for d. It returns false if the active fault changes first.
func (p *proxiedConn) wait(d time.Duration, changed chan struct{}) bool {
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
func (p *proxiedConn) allowance(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.planned.Kind == None || p.started || !p.due {
		return n
	}
	return int(min(int64(n), max(0, p.planned.ServerBytes-p.passed)))
}

// countPassed counts n forwarded bytes from the server, and starts the planned fault if it
// is due.
func (p *proxiedConn) countPassed(n int) {
	p.mu.Lock()
	p.passed += int64(n)
	due := p.due && !p.started && p.passed >= p.planned.ServerBytes
	p.mu.Unlock()
	if due {
		p.startIfDue()
	}
}

// startIfDue starts the planned fault if enough bytes have passed and it has not started yet. It
// must not be called before planned.Wait has passed.
func (p *proxiedConn) startIfDue() {
	p.mu.Lock()
	p.due = true
	f := p.planned
	started := !p.started && f.Kind != None && p.passed >= f.ServerBytes && p.startLocked(f)
	p.mu.Unlock()
	if started {
		p.takeEffect(f)
	}
}

// start makes f the active fault.
func (p *proxiedConn) start(f Fault) {
	p.mu.Lock()
	started := p.startLocked(f)
	p.mu.Unlock()
	if started {
		p.takeEffect(f)
	}
}

// startLocked is like start, but does not call takeEffect. It reports whether f is active. The
// caller must hold mu.
func (p *proxiedConn) startLocked(f Fault) bool {
	if p.server == nil {
		p.planned = f // run starts it when the server is connected
	}
	if p.closed || p.server == nil || p.active.Kind == HalfOpen {
		return false
	}
	p.started, p.recorded = true, false
	p.setLocked(f)
	if f.Duration > 0 {
		current := p.changed
		p.timers = append(p.timers, time.AfterFunc(f.Duration, func() { p.stopIfUnchanged(current) }))
	}
	return true
}

// takeEffect performs the immediate effect of f: Reset and Cut close the connections. It reports
// these faults and HalfOpen as injections. All other faults are reported when they delay data.
func (p *proxiedConn) takeEffect(f Fault) {
	switch f.Kind {
	case Reset, Cut:
		p.record()
		p.close(f.Kind == Reset)
	case HalfOpen:
		p.record()
	}
}

// record reports the active fault as an injection, unless it has already been reported.
func (p *proxiedConn) record() {
	p.mu.Lock()
	b := Injection{p.active.Kind, p.number, p.passed}
	first := !p.recorded && b.Kind != None
	p.recorded = true
	p.mu.Unlock()
	if first {
		p.proxy.recordInjection(b)
	}
}

// stop ends the active fault, unless it is HalfOpen, which cannot be undone.
func (p *proxiedConn) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopLocked()
}

// stopIfUnchanged is called when the Duration of a fault has passed. It ends the active fault if
// p.changed is still the given channel. Otherwise another fault is active now.
func (p *proxiedConn) stopIfUnchanged(changed chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == changed {
		p.stopLocked()
	}
}

// stopLocked is like stop. The caller must hold mu.
func (p *proxiedConn) stopLocked() {
	if !p.closed && p.active.Kind != HalfOpen {
		p.setLocked(Fault{})
	}
}

// heal ends the active fault and cancels the planned one.
func (p *proxiedConn) heal() {
	p.mu.Lock()
	p.started = true
	p.mu.Unlock()
	p.stop()
}

// setLocked makes f the active fault and wakes all waiters. The caller must hold mu.
func (p *proxiedConn) setLocked(f Fault) {
	p.active = f
	close(p.changed)
	p.changed = make(chan struct{})
}

// close closes both connections. Only the first call has an effect.
func (p *proxiedConn) close(withReset bool) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	close(p.changed)
	for _, t := range p.timers {
		t.Stop()
	}
	conns := []net.Conn{p.client, p.server}
	p.mu.Unlock()
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
