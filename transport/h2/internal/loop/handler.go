package loop

import (
	"context"
	"io"
	"log"
	"net/http"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
)

// An exchange is a request and its response, until the handler returns.
type exchange struct {
	// Immutable after construction.
	st     *stream
	req    *http.Request
	ctx    context.Context
	cancel context.CancelFunc
	head   bool // the method is HEAD
	// upgrade is true if makeUpgrade has made the request.
	upgrade bool

	response response // owned by the handler
	body     body     // guarded by the connection's mutex

	// Guarded by the connection's mutex.
	handler    http.Handler
	started    bool // the handler has started
	expects    bool // the client expects 100 Continue
	headSent   bool // the final status was sent
	finished   bool // the handler has returned
	taken      bool // the response is a Watch or a tunnel
	readTimer  *time.Timer
	writeTimer *time.Timer
}

// openExchange starts the handler for the request of a new stream.
func (c *conn) openExchange(st *stream, r *http.Request, b *headerBlock) {
	ctx, cancel := context.WithCancel(c.values)
	x := &exchange{st: st, ctx: ctx, cancel: cancel, head: r.Method == http.MethodHead, handler: c.handler}
	st.ex = x
	st.remoteClosed = b.end
	x.response.header = http.Header{}
	x.body = body{ex: x, arrived: sync.Cond{L: &c.mu}, declared: r.ContentLength, trailer: http.Header{}}
	x.body.window = window{limit: firstWindow, open: firstWindow}
	r.Body = http.NoBody
	switch {
	case b.tooLarge:
		x.handler = http.HandlerFunc(headersTooLarge)
	case r.Header[protocolField] != nil:
		if x.upgrade = r.Header[protocolField][0] == "websocket"; x.upgrade {
			makeUpgrade(r)
		} else {
			x.handler = http.HandlerFunc(unknownProtocol)
		}
		if b.end {
			x.body.err = io.EOF
		}
	case !b.end:
		r.Body = requestBody{&x.body}
		if httpguts.HeaderValuesContainsToken(r.Header["Expect"], "100-continue") {
			x.expects = true
			delete(r.Header, "Expect")
		}
	case r.ContentLength > 0:
		_ = c.streamError(st.id, http2.ErrCodeProtocol)
		return
	default:
		r.ContentLength = 0
		x.body.err = io.EOF
	}
	x.req = r.WithContext(ctx)
	if d := c.settings.requestTimeout; d > 0 && !b.end {
		x.setReadDeadline(time.Now().Add(d))
	}
	if d := c.settings.responseTimeout; d > 0 {
		x.setWriteDeadline(time.Now().Add(d))
	}
	c.startHandler(x)
}

func headersTooLarge(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusRequestHeaderFieldsTooLarge)
	_, _ = io.WriteString(w, "<h1>HTTP Error 431</h1><p>Request Header Field(s) Too Large</p>")
}

// startHandler starts the handler of x, or makes x wait if too many handlers are running. The limit
// includes handlers that still run after their streams were reset, so a client cannot start more
// handlers by resetting streams.
func (c *conn) startHandler(x *exchange) {
	if c.handlers >= int(c.settings.streams) {
		c.waiting = append(c.waiting, x)
		return
	}
	c.handlers++
	x.started = true
	go x.serve() // ends when the handler returns
}

// serve calls the handler and completes the response. It does not call the handler if the client
// has already reset the stream, so that a flood of such streams costs little.
func (x *exchange) serve() {
	defer x.returned()
	if x.ended() {
		return
	}
	completed := false
	defer func() {
		if p := recover(); !completed { // p is nil after runtime.Goexit
			x.failed(p)
		}
	}()
	var w http.ResponseWriter = x
	if x.upgrade {
		w = upgradeWriter{x}
	}
	x.handler.ServeHTTP(w, x.req)
	x.finish()
	completed = true
}

// ended reports whether the stream has ended.
func (x *exchange) ended() bool {
	c := x.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	return x.st.err != nil
}

// failed resets the stream after the handler has panicked with p, or ended its goroutine.
func (x *exchange) failed(p any) {
	c := x.st.c
	c.mu.Lock()
	x.st.abort(http2.ErrCodeInternal, errAborted)
	c.mu.Unlock()
	if p == nil || p == http.ErrAbortHandler {
		return
	}
	stack := make([]byte, 64<<10)
	stack = stack[:runtime.Stack(stack, false)]
	c.logf("http2: panic serving %v: %v\n%s", c.remote, p, stack)
}

func (c *conn) logf(format string, args ...any) {
	if c.hs.ErrorLog != nil {
		c.hs.ErrorLog.Printf(format, args...)
		return
	}
	log.Printf(format, args...)
}

// returned releases the resources of the handler, and starts handlers that had to wait because too
// many were running.
func (x *exchange) returned() {
	c := x.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.taken && !x.st.detached {
		x.st.abortWatch()
	}
	if !x.upgrade || !x.taken { // a tunnel outlives its handler
		x.release()
	}
	x.cancel()
	c.handlers--
	if len(c.waiting) > 0 {
		next := c.waiting[0]
		c.waiting = slices.Delete(c.waiting, 0, 1)
		c.startHandler(next)
	}
}

// release releases the rest of the request.
func (x *exchange) release() {
	x.finished = true
	x.stopTimers()
	x.body.closed = true
	x.body.discard()
	x.st.ex = nil
}

// fail is called when the stream ends.
func (x *exchange) fail(err error) {
	x.body.fail(err)
	if err != errClosed {
		x.cancel()
	}
	if x.upgrade {
		x.stopTimers()
	}
	if !x.started { // release the request now: handlers that ignore their contexts may run for long
		c := x.st.c
		c.waiting = slices.DeleteFunc(c.waiting, func(o *exchange) bool { return o == x })
		x.release()
	}
}

func (x *exchange) stopTimers() {
	for _, t := range []*time.Timer{x.readTimer, x.writeTimer} {
		if t != nil {
			t.Stop()
		}
	}
}

// setReadDeadline sets the time at which Read of the body fails. The zero time means never.
func (x *exchange) setReadDeadline(at time.Time) {
	x.setTimer(&x.readTimer, at, func() { x.body.fail(os.ErrDeadlineExceeded) })
}

// setWriteDeadline sets the time at which the stream is reset. The zero time means never.
func (x *exchange) setWriteDeadline(at time.Time) {
	x.setTimer(&x.writeTimer, at, func() { x.st.abort(http2.ErrCodeInternal, os.ErrDeadlineExceeded) })
}

func (x *exchange) setTimer(t **time.Timer, at time.Time, expire func()) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
	if at.IsZero() || x.finished {
		return
	}
	d := time.Until(at)
	if d <= 0 {
		expire()
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		c := x.st.c
		c.mu.Lock()
		defer c.mu.Unlock()
		if *t == timer && !x.finished { // otherwise the timer was replaced while it expired
			expire()
		}
	})
	*t = timer
}
