package loop

import (
	"context"
	"io"
	"log"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
)

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
	var w http.ResponseWriter = e
	if e.upgrade {
		w = upgradeWriter{e}
	}
	e.handler.ServeHTTP(w, e.req)
	e.finish()
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

func (c *conn) logf(format string, args ...any) {
	if c.hs.ErrorLog != nil {
		c.hs.ErrorLog.Printf(format, args...)
		return
	}
	log.Printf(format, args...)
}

// returned releases the resources of the handler, and starts handlers that had to wait because too
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
	c.handlers--
	if len(c.waiting) > 0 {
		next := c.waiting[0]
		c.waiting = slices.Delete(c.waiting, 0, 1)
		c.startHandler(next)
	}
}
