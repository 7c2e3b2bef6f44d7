// All calls of nhooyr.io/websocket are in this file. Its module is deprecated in name since its upkeep went to
// github.com/coder/websocket, which has the same API; v1.8.17 is what is asked for here, as a second voice beside gorilla.
//
//lint:file-ignore SA1019 see above: every call of the module is reported

package websocket

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"nhooyr.io/websocket"
)

// acceptNhooyr writes the response and returns the session. Subprotocol and headers are decided already.
func acceptNhooyr(t *takeover, r *http.Request, subprotocol string, isBinary bool) (session, error) {
	o := &websocket.AcceptOptions{InsecureSkipVerify: true} // checkRequest did
	if subprotocol != "" {
		o.Subprotocols = []string{subprotocol}
	}
	c, err := websocket.Accept(t, r, o)
	if err != nil {
		return nil, err
	}
	c.SetReadLimit(-1) // the gate has one
	s := &nhooyrSession{conn: t.conn, library: c, kind: websocket.MessageText, sending: newTurn()}
	if isBinary {
		s.kind = websocket.MessageBinary
	}
	return s, nil
}

// A nhooyrSession lets the library read and write. It writes message by message, which the conn holds where there are several.
type nhooyrSession struct {
	conn    *conn
	library *websocket.Conn
	kind    websocket.MessageType

	sending turn // held while messages are written: a large one is several writes
}

func (s *nhooyrSession) serve() closeCode {
	_, _, _ = s.library.Reader(context.Background()) // the gate lets no message through; the library answers a close
	return 0
}

func (s *nhooyrSession) send(frames [][]byte) error {
	s.sending.take()
	defer s.sending.pass()
	if len(frames) == 1 {
		return s.write(frames)
	}
	s.conn.hold()
	err := s.write(frames)
	return errors.Join(err, s.conn.release())
}

func (s *nhooyrSession) write(frames [][]byte) error {
	for _, f := range frames {
		// The deadline is the conn's, which knows of progress and costs less than a context for each message.
		if err := s.library.Write(context.Background(), s.kind, f); err != nil {
			return err
		}
	}
	return nil
}

func (s *nhooyrSession) ping(d time.Duration) bool {
	if !s.sending.free() {
		return true // a write is on its way, and has a deadline of its own
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return s.library.Ping(ctx) == nil
}

func (s *nhooyrSession) end(code closeCode, reason string) error {
	s.sending.take()
	defer s.sending.pass()
	return s.conn.end(code, reason)
}

func (s *nhooyrSession) release() { _ = s.library.CloseNow() }

// dialNhooyr returns a link over c, on which the handshake is over.
func dialNhooyr(c *conn) (link, error) {
	o := &websocket.DialOptions{HTTPClient: &http.Client{Transport: replayed{c}}}
	if c.gate.deflate {
		o.CompressionMode = websocket.CompressionNoContextTakeover
	}
	library, _, err := websocket.Dial(context.Background(), anyServer.String(), o)
	if err != nil {
		return nil, err
	}
	library.SetReadLimit(-1) // the gate has one
	return &nhooyrLink{library}, nil
}

type nhooyrLink struct{ library *websocket.Conn }

func (l *nhooyrLink) next() (isBinary bool, message io.Reader, err error) {
	kind, message, err := l.library.Reader(context.Background())
	if e, ok := errors.AsType[websocket.CloseError](err); ok {
		err = &closed{closeCode(e.Code), e.Reason}
	}
	return kind == websocket.MessageBinary, message, err
}

func (l *nhooyrLink) release() { _ = l.library.CloseNow() }
