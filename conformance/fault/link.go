package fault

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// A link is one connection through the proxy.
type link struct {
	// Immutable once it runs.
	proxy  *Proxy
	number int
	client net.Conn
	server net.Conn // nil: not yet; under mu until it runs
	fault  Fault    // the planned one; under mu until it runs

	mu sync.Mutex
	// Guarded by mu.
	mode    Fault         // what is going on; None: bytes pass
	due     bool          // fault.After has passed
	struck  bool          // the planned fault has begun, or will not any more
	counted bool          // mode has been counted
	passed  int64         // bytes of the server
	over    bool          // both connections are closed
	changed chan struct{} // closed when mode changes, or over
	timers  []*time.Timer
}

func newLink(p *Proxy, client net.Conn, number int) *link {
	return &link{proxy: p, number: number, client: client, changed: make(chan struct{})}
}

// run passes bytes until both directions have ended.
func (l *link) run(server net.Conn) {
	l.mu.Lock()
	if l.over { // the proxy was closed while it dialled
		l.mu.Unlock()
		_ = server.Close()
		return
	}
	l.server = server
	if l.fault.Kind != None && l.fault.Wait > 0 {
		l.timers = append(l.timers, time.AfterFunc(l.fault.Wait, l.ripen))
	}
	now := l.fault.Wait <= 0
	l.mu.Unlock()
	if now {
		l.ripen()
	}
	up := make(chan struct{})
	go func() { // waited for below
		defer close(up)
		l.pump(l.server, l.client, false)
	}()
	l.pump(l.client, l.server, true)
	<-up
	l.end(false)
}

// pump passes bytes from src to dst; down: they are the server's.
func (l *link) pump(dst, src net.Conn, down bool) {
	buf := make([]byte, 16<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 && !l.forward(dst, buf[:n], down) {
			return
		}
		if err != nil {
			l.close(dst, err)
			return
		}
	}
}

// close passes on that a direction has ended with err, unless that must not be seen.
func (l *link) close(dst net.Conn, err error) {
	for {
		mode, changed, over := l.look()
		switch {
		case over:
			return
		case mode.Kind == Stall:
			<-changed
			continue
		case mode.Kind == HalfOpen:
			// The end that closed has nobody to talk to; the other one must find out by itself.
			return
		case !errors.Is(err, io.EOF):
			l.end(true)
			return
		}
		if c, ok := dst.(interface{ CloseWrite() error }); ok {
			_ = c.CloseWrite() // where it fails that end is gone too
			return
		}
		l.end(false)
		return
	}
}

// look returns what is going on, and what is closed when that changes.
func (l *link) look() (mode Fault, changed chan struct{}, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mode, l.changed, l.over
}

// forward writes p to dst as the fault allows; false: the link is over.
func (l *link) forward(dst net.Conn, p []byte, down bool) bool {
	for len(p) > 0 {
		mode, changed, over := l.look()
		n := len(p)
		switch {
		case over:
			return false
		case mode.Kind == HalfOpen:
			return true
		case mode.Kind == Stall:
			l.count()
			<-changed
			continue
		case mode.Kind == Drip:
			l.count()
			n = min(n, max(mode.ChunkSize, 1))
			fallthrough
		case mode.Kind == Latency:
			l.count()
			if !l.wait(mode.ChunkDelay, changed) {
				continue
			}
		case down:
			n = l.before(n)
		}
		if n == 0 {
			l.ripen()
			continue
		}
		if _, err := dst.Write(p[:n]); err != nil {
			l.close(dst, err)
			return false
		}
		p = p[n:]
		if down {
			l.pass(n)
		}
	}
	return true
}

// wait waits for d; false: something else goes on now.
func (l *link) wait(d time.Duration, changed chan struct{}) bool {
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

// before returns how many of n bytes of the server pass before the fault; zero: it is time for it.
func (l *link) before(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault.Kind == None || l.struck || !l.due {
		return n
	}
	return int(min(int64(n), max(0, l.fault.ServerBytes-l.passed)))
}

// pass counts n bytes of the server that have passed.
func (l *link) pass(n int) {
	l.mu.Lock()
	l.passed += int64(n)
	ripe := l.due && !l.struck && l.passed >= l.fault.ServerBytes
	l.mu.Unlock()
	if ripe {
		l.ripen()
	}
}

// ripen begins the planned fault where its time has come and enough bytes have passed.
func (l *link) ripen() {
	l.mu.Lock()
	l.due = true
	ripe := !l.struck && l.fault.Kind != None && l.passed >= l.fault.ServerBytes
	l.mu.Unlock()
	if ripe {
		l.strike(l.fault)
	}
}

// strike begins f.
func (l *link) strike(f Fault) {
	l.mu.Lock()
	if l.server == nil {
		l.fault = f // as soon as it is a connection
	}
	if l.over || l.server == nil || l.mode.Kind == HalfOpen {
		l.mu.Unlock()
		return
	}
	l.struck, l.counted = true, false
	l.set(f)
	if f.Duration > 0 {
		mine := l.changed
		l.timers = append(l.timers, time.AfterFunc(f.Duration, func() { l.endIf(mine) }))
	}
	l.mu.Unlock()
	switch f.Kind {
	case Reset, Cut:
		l.count()
		l.end(f.Kind == Reset)
	case HalfOpen:
		l.count()
	}
}

// count takes down that the fault going on has bitten.
func (l *link) count() {
	l.mu.Lock()
	b := Injection{l.mode.Kind, l.number, l.passed}
	first := !l.counted && b.Kind != None
	l.counted = true
	l.mu.Unlock()
	if first {
		l.proxy.bit(b)
	}
}

// release ends what can end.
func (l *link) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle()
}

// endIf is release if what goes on is still what it was when changed was its channel: another fault may have taken its place.
func (l *link) endIf(changed chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == changed {
		l.settle()
	}
}

// settle ends what can end. mu is held.
func (l *link) settle() {
	if !l.over && l.mode.Kind != HalfOpen {
		l.set(Fault{})
	}
}

// heal ends what can end, and keeps the planned fault from beginning.
func (l *link) heal() {
	l.mu.Lock()
	l.struck = true
	l.mu.Unlock()
	l.release()
}

// set makes f what goes on. mu is held.
func (l *link) set(f Fault) {
	l.mode = f
	close(l.changed)
	l.changed = make(chan struct{})
}

// end closes both connections, the first time.
func (l *link) end(abruptly bool) {
	l.mu.Lock()
	if l.over {
		l.mu.Unlock()
		return
	}
	l.over = true
	close(l.changed)
	for _, t := range l.timers {
		t.Stop()
	}
	conns := []net.Conn{l.client, l.server}
	l.mu.Unlock()
	for _, c := range conns {
		switch {
		case c == nil:
		case abruptly:
			reset(c)
		default:
			_ = c.Close()
		}
	}
}

// reset closes c so that its peer sees a reset.
func reset(c net.Conn) {
	if c, ok := c.(interface{ SetLinger(int) error }); ok {
		_ = c.SetLinger(0) // where it fails the connection is gone
	}
	_ = c.Close()
}
