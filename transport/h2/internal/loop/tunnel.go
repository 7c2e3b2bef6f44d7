package loop

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/http2"

	"github.com/listwatch/listwatch/transport/internal/connio"
)

// makeUpgrade turns an extended CONNECT for WebSocket into the request by which an HTTP/1.1 client
// would open the WebSocket. Routers, middleware and WebSocket servers then treat both alike. RFC
// 8441, section 5, requires the same processing except for the key and its answer, so makeUpgrade
// sets a fixed key and acceptTunnel removes the answer.
func makeUpgrade(r *http.Request) {
	delete(r.Header, protocolField)
	r.Method = http.MethodGet
	r.ContentLength = 0
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	r.Header.Set("Sec-Websocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
}

// unknownProtocol responds to an extended CONNECT for anything but WebSocket (RFC 9220, section 3).
func unknownProtocol(w http.ResponseWriter, r *http.Request) {
	http.Error(w, fmt.Sprintf(":protocol %q: must be websocket", r.Header[protocolField][0]), http.StatusNotImplemented)
}

// An upgradeWriter is the http.ResponseWriter of a request that makeUpgrade has made.
type upgradeWriter struct{ *response }

var _ http.Hijacker = upgradeWriter{}

// Hijack implements http.Hijacker. The handler accepts the WebSocket by WriteHeader(101) before
// Hijack, or by writing a response with status 101 to the connection afterwards.
func (u upgradeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	x := u.x
	isAccepted := u.status == http.StatusOK
	switch {
	case x.taken:
		return nil, nil, http.ErrHijacked
	case u.status != 0 && !isAccepted:
		return nil, nil, errors.New("http2: the handler has already refused the WebSocket")
	}
	t := &tunnel{Watch: x.takeOver(0, true), x: x, isAccepted: isAccepted}
	return t, bufio.NewReadWriter(bufio.NewReader(t), bufio.NewWriter(t)), nil
}

// A tunnel is the connection of a hijacked WebSocket: a stream that carries bytes both ways until
// one end closes it. It remains open after the handler has returned.
//
// END_STREAM stands for the end of a TCP connection, and RST_STREAM for a reset (RFC 8441, section
// 5). A deadline for reading that has expired cannot be moved. A deadline for writing sets the time
// after which the stream is reset if the client keeps its window empty.
//
// A write by a function that was passed to Watch.Go does not block: see [Watch.Send].
type tunnel struct {
	Watch
	// Immutable after construction.
	x *exchange

	// Owned by the writer.
	isAccepted bool   // the response was sent
	head       []byte // the beginning of the response, until it is complete
}

// maxHead is the maximum size of the response that a handler writes to a tunnel.
const maxHead = 64 << 10

// respond adds p to the handler's response, and sends the response when it is complete.
func (t *tunnel) respond(p []byte) error {
	t.head = append(t.head, p...)
	end := bytes.Index(t.head, []byte("\r\n\r\n"))
	if end < 0 && len(t.head) <= maxHead {
		return nil
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(t.head)), nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Abort()
		return fmt.Errorf("http2: the response to a WebSocket must have status 101, but it begins with %.40q", t.head)
	}
	rest := t.head[end+4:]
	t.head, t.isAccepted = nil, true
	t.x.response.acceptTunnel(resp.Header)
	if len(rest) == 0 {
		return nil
	}
	return t.send([][]byte{rest}, true)
}

// Read implements net.Conn.
func (t *tunnel) Read(p []byte) (int, error) {
	n, err := requestBody{&t.x.body}.Read(p)
	if err == http.ErrBodyReadAfterClose {
		err = net.ErrClosed
	}
	return n, err
}

// Write implements net.Conn. It returns when all bytes are in the connection's buffer.
func (t *tunnel) Write(p []byte) (n int, err error) {
	if t.isAccepted {
		err = t.send([][]byte{p}, false)
	} else {
		err = t.respond(p)
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// WriteFrames implements connio.Tunnel.
func (t *tunnel) WriteFrames(frames [][]byte) error {
	if t.isAccepted {
		return t.send(frames, true)
	}
	for _, f := range frames {
		if _, err := t.Write(f); err != nil {
			return err
		}
	}
	return nil
}

// send sends frames. If shared is true, they must never change again.
func (t *tunnel) send(frames [][]byte, shared bool) error {
	c := t.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.st.place == placeStepping && !shared {
		// The caller of Write may reuse the slice before its bytes are sent.
		frames = [][]byte{bytes.Clone(frames[0])}
	}
	return t.st.sendLocked(frames, false, t.st.place != placeStepping, shared)
}

// Close implements net.Conn. It sends END_STREAM. If bytes are still waiting because the client
// does not accept them, it sends RST_STREAM instead.
func (t *tunnel) Close() error {
	t.end(false)
	return nil
}

// CloseWrite is the same as Close, because the server expects no more bytes from the client.
func (t *tunnel) CloseWrite() error { return t.Close() }

// Abort implements connio.Tunnel. It sends RST_STREAM.
func (t *tunnel) Abort() { t.end(true) }

func (t *tunnel) end(reset bool) {
	c := t.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	t.x.body.close()
	if reset || t.st.out != nil {
		t.st.abort(http2.ErrCodeCancel, errAborted)
	} else if !t.st.done {
		_ = t.st.sendLocked(nil, true, false, true) // on error, the stream has already failed
	}
}

// LocalAddr implements net.Conn.
func (t *tunnel) LocalAddr() net.Addr { return t.st.c.nc.LocalAddr() }

// RemoteAddr implements net.Conn.
func (t *tunnel) RemoteAddr() net.Addr { return t.st.c.nc.RemoteAddr() }

// SetDeadline implements net.Conn.
func (t *tunnel) SetDeadline(at time.Time) error {
	return errors.Join(t.SetReadDeadline(at), t.SetWriteDeadline(at))
}

// SetReadDeadline implements net.Conn.
func (t *tunnel) SetReadDeadline(at time.Time) error { return t.x.response.SetReadDeadline(at) }

// SetWriteDeadline implements net.Conn.
func (t *tunnel) SetWriteDeadline(at time.Time) error {
	c := t.st.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.st.stall = 0; !at.IsZero() {
		t.st.stall = max(1, time.Until(at))
		if until, ok := c.sched.stalled[t.st]; ok && (until.IsZero() || at.Before(until)) {
			c.sched.stalled.set(t.st, at)
			c.arm(at)
		}
	}
	return nil
}

var _ connio.Tunnel = (*tunnel)(nil)
