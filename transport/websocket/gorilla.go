package websocket

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// gorillaBufferSize is the size of the server's read buffer and of the client's write buffer.
// Both are small, because a client sends only control frames.
const gorillaBufferSize = 256

// gorillaBuffers stays empty. With a pool, gorilla takes a write buffer only when it writes a
// message, which it never does here.
var gorillaBuffers sync.Pool

// acceptGorilla writes the response and returns the server's end. subprotocol and deflate are
// the results of the negotiation.
func acceptGorilla(h *hijackedWriter, r *http.Request, subprotocol string, deflate bool) (serverConn, error) {
	u := websocket.Upgrader{
		ReadBufferSize:    gorillaBufferSize,
		WriteBufferPool:   &gorillaBuffers,
		Subprotocols:      []string{subprotocol},
		CheckOrigin:       func(*http.Request) bool { return true }, // checkRequest has checked it
		EnableCompression: deflate,
	}
	if deflate {
		// gorilla looks only for the name of the extension, so the copy of the request offers
		// nothing else. gorilla answers with agreedDeflate.
		r = r.WithContext(r.Context()) // a copy
		r.Header = r.Header.Clone()
		r.Header.Set("Sec-Websocket-Extensions", permessageDeflate)
	}
	h.conn.validator.deflate = deflate
	if subprotocol == "" {
		u.Subprotocols = []string{}
	}
	c, err := u.Upgrade(h, r, h.header)
	if err != nil {
		return nil, err
	}
	s := &gorillaServerConn{conn: h.conn, library: c} // does not retain h, whose buffers take 8 KiB
	c.SetPingHandler(func(payload string) error {
		s.conn.pong = []byte(payload)
		return nil
	})
	c.SetPongHandler(func(string) error {
		s.pinged.Store(false)
		return nil
	})
	c.SetCloseHandler(func(int, string) error { return nil }) // the stream answers
	return s, nil
}

// A gorillaServerConn reads with the library and writes frames to the connection below the
// library.
type gorillaServerConn struct {
	conn    *conn
	library *websocket.Conn
	pinged  atomic.Bool // a ping is not answered yet
}

func (s *gorillaServerConn) serve() closeCode {
	var err error
	for err == nil {
		var message io.Reader
		_, message, err = s.library.NextReader() // discards the previous message
		if c, ok := message.(io.Closer); ok {
			_ = c.Close() // releases the decompressor
		}
	}
	if e, ok := err.(*websocket.CloseError); ok && e.Code != websocket.CloseAbnormalClosure {
		return closeCode(e.Code)
	}
	return 0
}

func (s *gorillaServerConn) send(frames [][]byte) error { return s.conn.writeFrames(frames) }

func (s *gorillaServerConn) ping(time.Duration) bool {
	if len(s.conn.writing) > 0 {
		return true // no ping is needed: a write in progress has a deadline
	}
	if s.pinged.Swap(true) {
		return false
	}
	return s.conn.writeControl(appendControl(nil, opPing, nil, false)) == nil
}

func (s *gorillaServerConn) release() {}

// newGorillaReader returns a reader of c, whose handshake is complete.
func newGorillaReader(c *conn) (messageReader, error) {
	d := websocket.Dialer{
		NetDialContext:  func(context.Context, string, string) (net.Conn, error) { return &fakeHandshakeConn{conn: c}, nil },
		WriteBufferPool: &gorillaBuffers, WriteBufferSize: gorillaBufferSize, EnableCompression: c.validator.deflate,
	}
	library, _, err := d.DialContext(context.Background(), "ws://"+placeholderURL.Host, nil)
	if err != nil {
		return nil, err
	}
	return &gorillaReader{library}, nil
}

type gorillaReader struct{ library *websocket.Conn }

func (r *gorillaReader) next() (isBinary bool, message io.Reader, err error) {
	kind, message, err := r.library.NextReader()
	if e, ok := err.(*websocket.CloseError); ok && e.Code != websocket.CloseAbnormalClosure {
		err = &peerClose{closeCode(e.Code), e.Text}
	}
	return kind == websocket.BinaryMessage, message, err
}

func (r *gorillaReader) release() {}

// A fakeHandshakeConn is an open WebSocket connection that answers another handshake itself,
// without sending it. It is needed because gorilla creates a websocket.Conn only through a
// handshake.
type fakeHandshakeConn struct {
	*conn
	request  []byte // the bytes of the handshake written so far
	response []byte // the bytes of the response that are still to be read
	accepted bool
}

// Write collects the request of the handshake. After the handshake it writes to the connection.
func (c *fakeHandshakeConn) Write(p []byte) (int, error) {
	if c.accepted {
		return c.conn.Write(p)
	}
	c.request = append(c.request, p...)
	if !bytes.HasSuffix(c.request, []byte("\r\n\r\n")) {
		return len(p), nil
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(c.request)))
	if err != nil {
		return 0, err
	}
	response := bytes.NewBufferString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = upgradeHeader(r, c.validator.deflate).Write(response)
	response.WriteString("\r\n")
	c.response, c.request, c.accepted = response.Bytes(), nil, true
	return len(p), nil
}

// Read reads the response to the handshake. After the handshake it reads from the connection.
func (c *fakeHandshakeConn) Read(p []byte) (int, error) {
	if len(c.response) > 0 {
		n := copy(p, c.response)
		c.response = c.response[n:]
		return n, nil
	}
	return c.conn.Read(p)
}
