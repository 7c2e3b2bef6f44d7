package loop

import (
	"context"
	"io"
	"net/http"
	"os"
	"runtime"
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
	ctx    context.Context // of req, which middleware may replace; ends with the exchange
	cancel context.CancelFunc
	head   bool // the method is HEAD
	// upgrade is true if makeUpgrade has made the request.
	upgrade bool

	response response // owned by the handler

	// Guarded by the connection's mutex.
	body       body
	handler    http.Handler
	expects    bool // the client expects 100 Continue
	started    bool // the handler has started
	headSent   bool // the final status was sent
	taken      bool // the response is a Watch or a tunnel
	finished   bool // the handler has returned
	readTimer  *time.Timer
	writeTimer *time.Timer
}

// newExchange returns the exchange of a new stream, whose request is r.
func newExchange(st *stream, r *http.Request, b *headerBlock) *exchange {
	c := st.c
	ctx, cancel := context.WithCancel(c.values)
	x := &exchange{st: st, ctx: ctx, cancel: cancel, head: r.Method == http.MethodHead, handler: c.handler}
	st.ex = x
	st.remoteClosed = b.end
	x.response = response{x: x, header: http.Header{}}
	x.body = body{x: x, arrived: sync.Cond{L: &c.mu}, declared: r.ContentLength, trailer: http.Header{}}
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
	return x
}

func headersTooLarge(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusRequestHeaderFieldsTooLarge)
	_, _ = io.WriteString(w, "<h1>HTTP Error 431</h1><p>Request Header Field(s) Too Large</p>")
}

// serve calls the handler and completes the response. It does not call the handler if the client
// has already reset the stream, so that a flood of such streams costs little.
func (e *exchange) serve() {
	defer e.returned()
	if e.ended() {
		return
	}
	completed := false
	defer func() {
		if p := recover(); !completed { // p is nil after runtime.Goexit
			e.failed(p)
		}
	}()
	var w http.ResponseWriter = &e.response
	if e.upgrade {
		w = upgradeWriter{&e.response}
	}
	e.handler.ServeHTTP(w, e.req)
	e.response.finish()
	completed = true
}

// ended reports whether the stream has ended.
func (e *exchange) ended() bool {
	c := e.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	return e.st.err != nil
}

// failed resets the stream after the handler has panicked with p or, if p is nil, called
// runtime.Goexit.
func (e *exchange) failed(p any) {
	c := e.st.c
	c.mu.Lock()
	e.st.abort(http2.ErrCodeInternal, errAborted)
	c.mu.Unlock()
	if p == nil || p == http.ErrAbortHandler {
		return
	}
	stack := make([]byte, 64<<10)
	stack = stack[:runtime.Stack(stack, false)]
	c.logf("http2: panic serving %v: %v\n%s", c.remote, p, stack)
}

// returned releases the resources of the handler, and starts a handler that had to wait because too
// many were running.
func (e *exchange) returned() {
	c := e.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.taken && !e.st.detached {
		e.st.abortWatch()
	}
	if !e.upgrade || !e.taken { // a tunnel outlives its handler
		e.release()
	}
	e.cancel()
	c.handlers.returned()
}

// fail is called when the stream ends.
func (e *exchange) fail(err error) {
	e.body.fail(err)
	if err != errClosed {
		e.cancel()
	}
	if e.upgrade {
		e.stopTimers()
	}
	if !e.started { // release the request now: handlers that ignore their contexts may run for long
		e.st.c.handlers.remove(e)
		e.release()
	}
}

// release releases the rest of the request.
func (e *exchange) release() {
	e.finished = true
	e.stopTimers()
	e.body.close()
	if e.taken || e.st.remoteClosed { // otherwise the rest of the request is still checked
		e.st.ex = nil
	}
}

// takeOver makes the stream a watch.
func (e *exchange) takeOver(timeout time.Duration, detached bool) Watch {
	c := e.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	st := e.st
	e.taken = true
	e.stopTimers()
	st.watched, st.detached, st.stall, st.done = true, detached, max(0, timeout), st.err != nil
	return Watch{st}
}

// sendContinue sends 100 Continue if the client expects it and has no response yet.
func (e *exchange) sendContinue() {
	if !e.expects || e.headSent || e.st.err != nil {
		return
	}
	e.expects = false
	e.st.writeHeaders(http.StatusContinue, nil, false)
	e.st.c.wakeWriter()
}

// setReadDeadline sets the time at which Read of the body fails. The zero time means never.
func (e *exchange) setReadDeadline(at time.Time) {
	e.setTimer(&e.readTimer, at, func() { e.body.fail(os.ErrDeadlineExceeded) })
}

// setWriteDeadline sets the time at which the stream is reset. The zero time means never.
func (e *exchange) setWriteDeadline(at time.Time) {
	e.setTimer(&e.writeTimer, at, func() { e.st.abort(http2.ErrCodeInternal, os.ErrDeadlineExceeded) })
}

func (e *exchange) setTimer(t **time.Timer, at time.Time, expire func()) {
	if *t != nil {
		(*t).Stop()
		*t = nil
	}
	if at.IsZero() || e.finished {
		return
	}
	d := time.Until(at)
	if d <= 0 {
		expire()
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		c := e.st.c
		c.mu.Lock()
		defer c.mu.Unlock()
		if *t == timer && !e.finished { // otherwise the timer was replaced while it expired
			expire()
		}
	})
	*t = timer
}

func (e *exchange) stopTimers() {
	for _, t := range []*time.Timer{e.readTimer, e.writeTimer} {
		if t != nil {
			t.Stop()
		}
	}
}
