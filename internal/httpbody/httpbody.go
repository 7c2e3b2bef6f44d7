// Package httpbody reads the bodies of requests. It also prevents a client from occupying an
// HTTP/1.1 connection with a body that never ends, because net/http reads the rest of the body
// before it sends a response, without a deadline.
package httpbody

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// Timeout limits the time that a client takes to send a body.
	Timeout = 30 * time.Second
	// settleTimeout limits the time for which a response waits for a body that it does not need.
	settleTimeout = time.Second
	// settleBytes is the maximum number of bytes of such a body that are read, as in net/http.
	settleBytes = 256 << 10
)

// Guard sets a read deadline for the body of r, until the handler reads the body with [Read] or
// discards it with [Settle]. It may be called several times, and has no effect over HTTP/2.
//
// Guard makes the response close the connection in three cases:
//
//   - A GET, HEAD or OPTIONS has a body, because no handler reads it.
//   - The body is chunked. An additional Content-Length may be an attempt to smuggle another
//     request past a proxy, and "the server MUST close the connection after responding to such a
//     request" (rfc9112#section-6.1), but net/http drops that Content-Length silently.
//   - The request uses HTTP/1.0, because net/http drops its Transfer-Encoding.
func Guard(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 {
		return
	}
	if len(r.TransferEncoding) > 0 || r.ProtoMinor == 0 {
		closeConnection(w)
	}
	if !hasBody(r) {
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		// Do not wait for the body. The deadline limits the time for which net/http reads it after
		// the response.
		closeConnection(w)
		setReadDeadline(w, settleTimeout)
	default:
		setReadDeadline(w, Timeout)
	}
}

// Settle discards the rest of a body, if it arrives within a second, so that the connection can
// serve further requests. Otherwise the response closes the connection. Call it before the
// response.
func Settle(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 1 || !hasBody(r) || !setReadDeadline(w, settleTimeout) {
		return
	}
	if r.Header.Get("Expect") != "" {
		return // a read would request the body; net/http closes the connection instead
	}
	// A chunked body is read even though its connection closes: otherwise the close would reset the
	// connection, and the client might lose the response.
	if _, err := io.CopyN(io.Discard, r.Body, settleBytes); errors.Is(err, io.EOF) {
		clearReadDeadline(w)
		return
	}
	closeConnection(w)
}

// Read reads the body of r within [Timeout]. If the body has more than limit bytes, the error is an
// *http.MaxBytesError; a negative limit means no limit. When ctx ends, the client has one more
// second to send the body. After an error over HTTP/1.1, the response closes the connection.
func Read(ctx context.Context, w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body := r.Body
	if limit >= 0 {
		if r.ContentLength > limit {
			return nil, &http.MaxBytesError{Limit: limit}
		}
		body = http.MaxBytesReader(w, body, limit)
	}
	setReadDeadline(w, Timeout)
	stop := context.AfterFunc(ctx, func() { setReadDeadline(w, settleTimeout) })
	defer stop()
	// A small body needs one allocation. The buffer of a large body grows as the body arrives, so
	// that a client cannot occupy memory by a Content-Length alone.
	const mostAtOnce = 4 << 10
	buf := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), mostAtOnce)+bytes.MinRead))
	_, err := buf.ReadFrom(body)
	if err == nil {
		stop()
		// Otherwise net/http, which now waits for the client to disconnect, would cancel the
		// request when the deadline passes.
		clearReadDeadline(w)
		return buf.Bytes(), nil
	}
	if r.ProtoMajor == 1 {
		closeConnection(w) // the deadline stays, so that net/http does not read for long
	}
	return nil, err
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// setReadDeadline sets a read deadline, and reports whether w supports deadlines. If not, the owner
// of w must limit the time.
func setReadDeadline(w http.ResponseWriter, d time.Duration) bool {
	return http.NewResponseController(w).SetReadDeadline(time.Now().Add(d)) == nil
}

func clearReadDeadline(w http.ResponseWriter) {
	// An error means that w has no deadlines.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
}

func closeConnection(w http.ResponseWriter) { w.Header().Set("Connection", "close") }
