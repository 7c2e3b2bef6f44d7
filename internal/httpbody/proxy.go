package httpbody

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"sync"
	"time"
)

// Forward returns a handler that passes requests on with a copy of p, which must have a Rewrite. It
// differs from p in how it handles the bodies of requests:
//
//   - No response waits for a body that the server does not need. Over HTTP/2, http.Transport stops
//     sending a body after a status above 299, and waits until a Read in progress has returned. So
//     the response of p would not end before the client sends more, but most clients stop sending,
//     too. Forward ends the Read. Over HTTP/1.1, net/http waits for the Read before it sends the
//     response. There, a client has a second to complete its body, as with [Settle].
//   - A server that closes its connection over HTTP/1.1 ends the Read within two seconds, too.
//     http.Transport would report the end only after the client has sent more.
//   - A body of known length ends without another read. http.Transport would read once more to see
//     the end, and close its connection if that read fails. It does fail if it is late, because
//     net/http closes the body of a request over HTTP/1.1 when its handler begins to respond. So a
//     response that is still arriving would be cut off.
func Forward(p *httputil.ReverseProxy) http.Handler {
	forward := *p
	forward.Rewrite = func(r *httputil.ProxyRequest) {
		p.Rewrite(r)
		if b, ok := r.In.Body.(*forwardedBody); ok && r.Out.Body != nil {
			r.Out.Body = b
		}
	}
	forward.Transport = settler{cmp.Or[http.RoundTripper](p.Transport, http.DefaultTransport)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !hasBody(r) {
			forward.ServeHTTP(w, r)
			return
		}
		b := &forwardedBody{w: w, r: r, left: r.ContentLength}
		b.returned.L = &b.mu
		defer b.Close() // the transport must not read the body after the handler has returned
		out := r.WithContext(context.WithValue(r.Context(), forwardedKey{}, b))
		out.Body = b
		forward.ServeHTTP(w, out)
	})
}

// forwardedKey is the key of a request's context for its *forwardedBody.
type forwardedKey struct{}

// A settler settles the body of a request before the response is sent.
type settler struct{ http.RoundTripper }

func (s settler) RoundTrip(r *http.Request) (*http.Response, error) {
	b, ok := r.Context().Value(forwardedKey{}).(*forwardedBody)
	if !ok {
		return s.RoundTripper.RoundTrip(r)
	}
	watched := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { b.setConn(info.Conn) },
	})
	done := make(chan struct{})
	go b.watchConn(done)
	response, err := s.RoundTripper.RoundTrip(r.WithContext(watched))
	close(done)
	b.settle(err != nil || response.StatusCode > 299)
	return response, err
}

// connCheckInterval is the interval at which a forwardedBody checks whether the connection to the
// server is still open.
const connCheckInterval = time.Second

// A forwardedBody is the body of a request that is passed on. Its Close does not wait for a Read.
type forwardedBody struct {
	// Immutable after construction.
	w http.ResponseWriter
	r *http.Request

	mu sync.Mutex
	// Guarded by mu.
	conn      net.Conn // to the server; nil before there is one
	left      int64    // the bytes that were not read; negative if unknown
	closed    bool
	reading   bool
	isLimited bool      // the Read in progress has a deadline
	returned  sync.Cond // signals that a Read has returned
	err       error     // of the last Read
}

func (b *forwardedBody) setConn(c net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conn = c
}

// watchConn closes b if a Read is in progress although the connection to the server is closed. It
// returns when done is closed.
func (b *forwardedBody) watchConn(done <-chan struct{}) {
	ticker := time.NewTicker(connCheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if b.isOrphaned() {
				b.Close()
				return
			}
		case <-done:
			return
		}
	}
}

// isOrphaned reports whether a Read is in progress for a connection that http.Transport has
// closed.
func (b *forwardedBody) isOrphaned() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	// http.Transport sets no read deadlines, so clearing them only reports whether the connection
	// is closed.
	return b.reading && b.conn != nil && errors.Is(b.conn.SetReadDeadline(time.Time{}), net.ErrClosed)
}

// Read implements io.Reader.
func (b *forwardedBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case b.left == 0:
		return 0, io.EOF
	case b.left > 0:
		p = p[:min(int64(len(p)), b.left)]
	}
	b.reading = true
	b.mu.Unlock()
	n, err := b.r.Body.Read(p)
	b.mu.Lock()
	b.reading, b.err = false, err
	b.returned.Broadcast()
	if b.left > 0 {
		b.left -= int64(n)
	}
	if errors.Is(err, io.EOF) {
		b.left = 0
	}
	return n, err
}

// Close implements io.Closer. Over HTTP/2 it ends a Read in progress. Over HTTP/1.1 it limits the
// time of the Read, because the Close of the server's body would wait for it.
func (b *forwardedBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	if b.r.ProtoMajor >= 2 {
		return b.r.Body.Close()
	}
	b.isLimited = b.reading && setReadDeadline(b.w, settleTimeout)
	return nil
}

// settle is called before the response is sent. Over HTTP/1.1 it discards the rest of the body as
// [Settle] does, because net/http would discard it without a limit of time. The server may still
// read the rest if it has accepted the request and the rest is so large that net/http would not
// discard it.
func (b *forwardedBody) settle(refused bool) {
	if left := b.remaining(); b.r.ProtoMajor >= 2 || left == 0 || !refused && left > settleBytes {
		return
	}
	b.Close()
	b.mu.Lock()
	for b.reading && b.isLimited {
		b.returned.Wait()
	}
	failed := b.reading || b.err != nil && !errors.Is(b.err, io.EOF)
	b.mu.Unlock()
	if failed {
		closeConnection(b.w)
	} else {
		Settle(b.w, b.r)
	}
}

func (b *forwardedBody) remaining() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left
}
