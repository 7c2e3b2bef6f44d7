package transport

import (
	"net/http"
	"sync"
	"time"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

// A writeGuard makes the writes of one response fail if the peer accepts no data.
type writeGuard interface {
	// The method begin is called before each write, and the method end after the last write of a
	// batch. A write fails if it is still in progress when the timeout has passed since the call of
	// begin.
	begin()
	end()
	// abort ends the response so that the client does not consider it complete. When abort
	// is called, no write is in progress, and the write deadline is in the past.
	abort() error
}

func newWriteGuard(w http.ResponseWriter, r *http.Request, timeout time.Duration) writeGuard {
	rc := http.NewResponseController(w)
	if r.ProtoMajor == 1 {
		return &connGuard{rc: rc, deadline: connio.WriteDeadline{SetFunc: rc.SetWriteDeadline, Timeout: timeout}}
	}
	return &streamGuard{rc: rc, timeout: timeout}
}

// A connGuard is for HTTP/1, where no other response shares the connection and its write
// deadline.
type connGuard struct {
	rc       *http.ResponseController
	deadline connio.WriteDeadline
}

func (g *connGuard) begin() { g.deadline.Arm() }

// end does not remove the deadline, because a deadline that expires between two writes has
// no effect.
func (g *connGuard) end() {}

// abort closes the connection without a last chunk. The client sees a reset, which is the
// only way to signal an incomplete response in HTTP/1.0.
func (g *connGuard) abort() error {
	conn, _, err := g.rc.Hijack()
	if err != nil {
		return err
	}
	connio.Reset(conn)
	return nil
}

// A streamGuard is for HTTP/2. It uses a timer that runs only during writes. The write
// deadline of net/http cannot be used: when it expires, net/http resets the stream even if
// no write is in progress. Moving the deadline before each write would prevent that, but
// costs more than the write.
type streamGuard struct {
	// Immutable after construction.
	rc      *http.ResponseController
	timeout time.Duration // negative means no limit

	mu sync.Mutex
	// Guarded by mu.
	timer *time.Timer // nil before the first call of begin
	// until is the time at which the current write fails, or zero if no write is in progress.
	until time.Time
}

func (g *streamGuard) begin() {
	if g.timeout < 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = time.Now().Add(g.timeout)
	if g.timer == nil {
		g.timer = time.AfterFunc(g.timeout, g.expire)
	} else {
		g.timer.Reset(g.timeout)
	}
}

func (g *streamGuard) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
	}
	g.until = time.Time{}
}

// expire resets the stream. It holds mu, so that it never uses the response after a call of end,
// because the handler may have returned by then.
func (g *streamGuard) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until.IsZero() || time.Now().Before(g.until) {
		return // the timer belongs to a write that has finished
	}
	_ = g.rc.SetWriteDeadline(longAgo) // if this fails, the timeout of the connection still applies
}

// abort does nothing: net/http has already sent RST_STREAM, because the deadline is in the
// past.
func (g *streamGuard) abort() error { return nil }
