package websocket

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// gorillaReadBuffer is how much is read from a client at once: it sends nothing but control frames.
const gorillaReadBuffer = 256

// gorillaBuffers stays empty: with a pool, gorilla takes no write buffer before it writes a message, and it never does here.
var gorillaBuffers sync.Pool

// acceptGorilla writes the response and returns the session. Subprotocol, compression and headers are decided already.
func acceptGorilla(t *takeover, r *http.Request, subprotocol string, deflate bool) (session, error) {
	u := websocket.Upgrader{
		ReadBufferSize:    gorillaReadBuffer,
		WriteBufferPool:   &gorillaBuffers,
		Subprotocols:      []string{subprotocol},
		CheckOrigin:       func(*http.Request) bool { return true }, // checkRequest did
		EnableCompression: deflate,
	}
	if deflate {
		// The library judges by the name alone, and answers with agreedDeflate.
		r = r.WithContext(r.Context()) // a copy
		r.Header = r.Header.Clone()
		r.Header.Set("Sec-Websocket-Extensions", permessageDeflate)
	}
	t.conn.gate.deflate = deflate
	if subprotocol == "" {
		u.Subprotocols = []string{}
	}
	c, err := u.Upgrade(t, r, t.header)
	if err != nil {
		return nil, err
	}
	s := &gorillaSession{conn: t.conn, library: c} // and not t: its buffers are 8 KiB
	c.SetPingHandler(func(payload string) error {
		s.conn.pong = []byte(payload)
		return nil
	})
	c.SetPongHandler(func(string) error {
		s.waiting.Store(false)
		return nil
	})
	c.SetCloseHandler(func(int, string) error { return nil }) // the stream answers
	return s, nil
}

// A gorillaSession lets the library read and writes ready frames beneath it.
type gorillaSession struct {
	conn    *conn
	library *websocket.Conn
	waiting atomic.Bool // for a pong
}

func (s *gorillaSession) serve() closeCode {
	_, _, err := s.library.NextReader() // the gate lets no message through, so this returns at the end alone
	if e, ok := err.(*websocket.CloseError); ok && e.Code != websocket.CloseAbnormalClosure {
		return closeCode(e.Code)
	}
	return 0
}

func (s *gorillaSession) send(frames [][]byte) error { return s.conn.writeFrames(frames) }

func (s *gorillaSession) ping(time.Duration) bool {
	if !s.conn.writing.free() {
		return true // a write is on its way, and has a deadline of its own
	}
	if s.waiting.Swap(true) {
		return false
	}
	return s.conn.writeControl(appendControl(nil, opPing, nil, false)) == nil
}

func (s *gorillaSession) end(code closeCode, reason string) error { return s.conn.end(code, reason) }

func (s *gorillaSession) release() {}

// dialGorilla returns a link over c, on which the handshake is over.
func dialGorilla(c *conn) (link, error) {
	d := websocket.Dialer{
		NetDialContext:  func(context.Context, string, string) (net.Conn, error) { return &replay{conn: c}, nil },
		WriteBufferPool: &gorillaBuffers, WriteBufferSize: gorillaReadBuffer, EnableCompression: c.gate.deflate,
	}
	library, _, err := d.DialContext(context.Background(), "ws://"+anyServer.Host, nil)
	if err != nil {
		return nil, err
	}
	return &gorillaLink{library}, nil
}

type gorillaLink struct{ library *websocket.Conn }

func (l *gorillaLink) next() (isBinary bool, message io.Reader, err error) {
	kind, message, err := l.library.NextReader()
	if e, ok := err.(*websocket.CloseError); ok && e.Code != websocket.CloseAbnormalClosure {
		err = &closed{closeCode(e.Code), e.Text}
	}
	return kind == websocket.BinaryMessage, message, err
}

func (l *gorillaLink) release() {}
