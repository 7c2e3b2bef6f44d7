package transport

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport/internal/connio"
)

// A responseLink is the [Link] of a stream over an http.ResponseWriter. The stream ends when the
// handler returns.
type responseLink struct {
	Conn
	// Immutable after construction.
	w          http.ResponseWriter
	rc         *http.ResponseController
	guard      writeGuard
	unreadBody bool // the request has a body, which the server does not read
}

// OpenResponse responds to r with status 200 and the headers of w, which are sent
// immediately, and returns the stream. encoder is the result of [Negotiate]. The stream is
// done when the context of r ends or the Sender is closed. The handler must
// close the Sender before it returns, because other goroutines must not use w after that.
//
// Abort takes effect immediately if w supports write deadlines and, for HTTP/1, hijacking.
// Otherwise every call of Close(Abort) returns an error, and the handler must panic with
// [http.ErrAbortHandler]. The handler may panic after every Abort. Finished and GoingAway take
// effect when the handler returns.
//
// If w cannot be flushed, events would not reach the client, so OpenResponse writes nothing and
// returns an error.
func OpenResponse(w http.ResponseWriter, r *http.Request, o Options, encoder Encoder) (*Stream, error) {
	if !canFlush(w) {
		w.Header().Del("Content-Encoding") // the error response is not compressed
		message := fmt.Sprintf("cannot flush a %T: middleware must implement Unwrap or Flush", w)
		return nil, &listwatch.Error{Code: listwatch.Unknown, Message: message}
	}
	rc := http.NewResponseController(w)
	timeout := o.WriteTimeoutOrDefault()
	s := &responseLink{w: w, rc: rc, guard: newWriteGuard(rc, r, timeout), unreadBody: r.ContentLength != 0}
	s.Init(s, timeout, encoder)
	if s.unreadBody && r.ProtoMajor == 1 {
		// Otherwise net/http would parse the rest of the body as the next request.
		w.Header().Set("Connection", "close")
	}
	// The timeouts of the http.Server are for short requests; a stream has timeouts of its own.
	// The errors are ignored, because a w without deadlines has nothing to reset.
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Time{})
	// Without full duplex, net/http would read the request's body before it sends the
	// headers.
	_ = rc.EnableFullDuplex()
	w.WriteHeader(http.StatusOK)
	// After an error the headers may have been sent, so return a stream, although a broken one.
	s.Open(nil)
	context.AfterFunc(r.Context(), s.setDone)
	return &Stream{Sender: s, Encoder: encoder, OnDone: s.OnDone, Segments: o.Segments}, nil
}

// Close implements [Sender]. Each call waits for the first one, because the handler may return
// after it.
func (r *responseLink) Close(end End) error {
	_ = r.Conn.Close(end)
	return r.Wait()
}

func (r *responseLink) WriteFrames(frames [][]byte) error {
	defer r.guard.end()
	if err := connio.WriteBatched(frames, r.write); err != nil {
		return err
	}
	r.guard.begin()
	return r.rc.Flush()
}

func (r *responseLink) write(p []byte) error {
	r.guard.begin()
	_, err := r.w.Write(p)
	return err
}

func (r *responseLink) Interrupt() error {
	if err := r.rc.SetWriteDeadline(connio.LongAgo); err != nil {
		return &listwatch.Error{Code: listwatch.Unknown, Op: "abort", Err: err}
	}
	return nil
}

// End implements [Link]. net/http writes the end of the response when the handler returns.
func (r *responseLink) End(end End, trailer []byte) error {
	if r.unreadBody {
		// Otherwise net/http would wait for the rest of the body.
		_ = r.rc.SetReadDeadline(connio.LongAgo)
	}
	if end == Abort {
		return r.guard.abort()
	}
	defer r.guard.end()
	r.guard.begin() // the deadline also applies to what the handler leaves to net/http
	if len(trailer) == 0 {
		return nil
	}
	if err := r.write(trailer); err != nil {
		return connio.SendError(err)
	}
	return nil
}

// A writeGuard makes the writes of one response fail if the peer accepts no data.
type writeGuard interface {
	// begin is called before each write, and end after the last write of a batch. A write fails if
	// it is still in progress when the timeout has passed since the call of begin.
	begin()
	end()
	// abort ends the response so that the client does not consider it complete. When abort
	// is called, no write is in progress, and the write deadline is in the past.
	abort() error
}

func newWriteGuard(rc *http.ResponseController, r *http.Request, timeout time.Duration) writeGuard {
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

// A streamGuard is for HTTP/2 and later. It uses a timer that runs only during writes. The write
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
	// If this fails, the timeout of the connection still applies.
	_ = g.rc.SetWriteDeadline(connio.LongAgo)
}

// abort does nothing: net/http has already reset the stream, because the deadline is in the
// past. quic-go resets it when the handler returns.
func (g *streamGuard) abort() error { return nil }
