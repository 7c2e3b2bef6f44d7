// This file holds all calls of nhooyr.io/websocket, at v1.8.17. That module is deprecated
// because it continues as github.com/coder/websocket, which has the same API.
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

// acceptNhooyr writes the response and returns the server's end. subprotocol is the result of
// the negotiation.
func acceptNhooyr(h *hijackedWriter, r *http.Request, subprotocol string, isBinary bool) (serverConn, error) {
	o := &websocket.AcceptOptions{InsecureSkipVerify: true} // checkRequest has checked the origin
	if subprotocol != "" {
		o.Subprotocols = []string{subprotocol}
	}
	c, err := websocket.Accept(h, r, o)
	if err != nil {
		return nil, err
	}
	c.SetReadLimit(-1) // the validator limits messages
	s := &nhooyrServerConn{conn: h.conn, library: c, messageType: websocket.MessageText}
	if isBinary {
		s.messageType = websocket.MessageBinary
	}
	return s, nil
}

// A nhooyrServerConn reads and writes with the library, which writes each message separately. To
// write several messages at once, conn buffers them.
type nhooyrServerConn struct {
	conn        *conn
	library     *websocket.Conn
	messageType websocket.MessageType
}

func (s *nhooyrServerConn) serve() closeCode {
	// Reader fails after a close frame, which the library has then answered, or after a failure.
	for {
		_, message, err := s.library.Reader(context.Background())
		if err == nil {
			_, err = io.Copy(io.Discard, message)
		}
		if err != nil {
			return 0
		}
	}
}

func (s *nhooyrServerConn) send(frames [][]byte) error {
	if len(frames) == 1 {
		return s.write(frames)
	}
	s.conn.startBuffering()
	err := s.write(frames)
	return errors.Join(err, s.conn.flushBuffer())
}

func (s *nhooyrServerConn) write(frames [][]byte) error {
	for _, f := range frames {
		// conn sets the deadlines, which depend on progress and cost less than a context per
		// message.
		if err := s.library.Write(context.Background(), s.messageType, f); err != nil {
			return err
		}
	}
	return nil
}

func (s *nhooyrServerConn) ping(timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.library.Ping(ctx) == nil
}

func (s *nhooyrServerConn) release() { _ = s.library.CloseNow() }

// newNhooyrReader returns a reader of c, whose handshake is complete.
func newNhooyrReader(c *conn) (messageReader, error) {
	o := &websocket.DialOptions{HTTPClient: &http.Client{Transport: acceptingTransport{c}}}
	if c.validator.deflate {
		o.CompressionMode = websocket.CompressionNoContextTakeover
	}
	library, _, err := websocket.Dial(context.Background(), placeholderURL.String(), o)
	if err != nil {
		return nil, err
	}
	library.SetReadLimit(-1) // the validator limits messages
	return &nhooyrReader{library}, nil
}

type nhooyrReader struct{ library *websocket.Conn }

func (r *nhooyrReader) next() (isBinary bool, message io.Reader, err error) {
	messageType, message, err := r.library.Reader(context.Background())
	if e, ok := errors.AsType[websocket.CloseError](err); ok {
		err = &peerClose{closeCode(e.Code), e.Reason}
	}
	return messageType == websocket.MessageBinary, message, err
}

func (r *nhooyrReader) release() { _ = r.library.CloseNow() }

// An acceptingTransport accepts a handshake without sending it, with an open WebSocket
// connection as the body of the response. It is needed because nhooyr creates a websocket.Conn
// only through a handshake.
type acceptingTransport struct{ conn *conn }

// RoundTrip accepts the handshake r.
func (t acceptingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusSwitchingProtocols, Header: upgradeHeader(r, t.conn.validator.deflate), Body: t.conn, Request: r,
	}, nil
}
