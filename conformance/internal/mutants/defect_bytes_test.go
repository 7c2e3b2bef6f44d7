package mutants

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/transport/websocket/gorilla"
	"github.com/listwatch/listwatch/transport/websocket/nhooyr"
)

// onFrames returns a function that wraps a transport. The wrapper changes the payloads of events,
// but their envelopes stay valid.
func onFrames(change func(payload []byte) []byte) func(transport.Server) transport.Server {
	return func(s transport.Server) transport.Server { return &frameChangingServer{s, change} }
}

type frameChangingServer struct {
	transport.Server
	change func([]byte) []byte
}

// Accept replaces the sender of the stream.
func (f *frameChangingServer) Accept(
	w http.ResponseWriter, r *http.Request, o transport.Options,
) (*transport.Stream, error) {
	o.Detach = true // so that Detached reports whether the connection was hijacked
	stream, err := f.Server.Accept(w, r, o)
	if err != nil {
		return nil, err
	}
	sender := &frameChangingSender{stream.Sender, f.change}
	_, isNative := f.Server.(*websocket.Server)
	switch {
	case isNative:
		sender.change = func(frame []byte) []byte {
			head, payload, ok := splitFrame(frame)
			if !ok {
				return frame
			}
			return joinFrame(head[0], f.change(payload))
		}
	case f.Name() == "chunked" && stream.Detached:
		sender.change = func(chunk []byte) []byte {
			_, payload, _ := bytes.Cut(chunk, []byte("\r\n"))
			payload = f.change(bytes.TrimSuffix(payload, []byte("\r\n")))
			return fmt.Appendf(nil, "%x\r\n%s\r\n", len(payload), payload)
		}
	}
	stream.Sender = sender
	return stream, nil
}

type frameChangingSender struct {
	transport.Sender
	change func([]byte) []byte
}

// Send sends changed copies, because other streams may share the frames.
func (f *frameChangingSender) Send(frames [][]byte) error {
	changed := make([][]byte, len(frames))
	for i, frame := range frames {
		changed[i] = f.change(bytes.Clone(frame))
	}
	return f.Sender.Send(changed)
}

// onWrites returns a function that wraps a handler. The wrapper replaces the bytes of each write to
// a hijacked WebSocket connection with the result of change. It has no effect on other transports.
func onWrites(change func([]byte) []byte) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(&hijackWriter{ResponseWriter: w, onWrite: change}, r)
		})
	}
}

// onReads is like onWrites, but changes the bytes that the server reads. change must keep their
// number.
func onReads(change func([]byte) []byte) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(&hijackWriter{ResponseWriter: w, onRead: change}, r)
		})
	}
}

type hijackWriter struct {
	http.ResponseWriter
	onRead, onWrite func([]byte) []byte
}

// Unwrap is for http.ResponseController.
func (h *hijackWriter) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// Hijack returns a connection that changes reads and writes.
func (h *hijackWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, buffers, err := http.NewResponseController(h.ResponseWriter).Hijack()
	return &alteredConn{Conn: c, OnRead: h.onRead, OnWrite: h.onWrite}, buffers, err
}

// An alteredConn changes the bytes that it reads and writes. OnWrite may change the length,
// OnRead must not.
type alteredConn struct {
	net.Conn
	OnRead, OnWrite func([]byte) []byte
}

// Read applies OnRead.
func (a *alteredConn) Read(p []byte) (int, error) {
	n, err := a.Conn.Read(p)
	if a.OnRead != nil {
		copy(p[:n], a.OnRead(p[:n]))
	}
	return n, err
}

// Write applies OnWrite.
func (a *alteredConn) Write(p []byte) (int, error) {
	changed := p
	if a.OnWrite != nil {
		changed = a.OnWrite(bytes.Clone(p))
	}
	if _, err := a.Conn.Write(changed); err != nil {
		return 0, err
	}
	return len(p), nil
}

// onClientConns returns a function that copies a client. The copy calls change for each new
// connection.
func onClientConns(change func(*alteredConn)) func(transport.Client) transport.Client {
	return onClientNetwork(onConns(func(c net.Conn) net.Conn {
		altered := &alteredConn{Conn: c}
		change(altered)
		return altered
	}))
}

// onClientNetwork returns a function that copies a client and alters the network of the copy.
func onClientNetwork(alter func(transport.Network) transport.Network) func(transport.Client) transport.Client {
	return func(c transport.Client) transport.Client {
		switch c := c.(type) {
		case *chunked.Client:
			return &chunked.Client{Network: alter(c.Network)}
		case *h2.Client:
			return &h2.Client{Network: alter(c.Network)}
		case *websocket.Client:
			return &websocket.Client{Network: alter(c.Network)}
		case *gorilla.Client:
			return &gorilla.Client{Network: alter(c.Network)}
		case *nhooyr.Client:
			return &nhooyr.Client{Network: alter(c.Network)}
		}
		return c
	}
}

// withNormalClose replaces the code of a close frame with 1000. p is the data of one write.
func withNormalClose(p []byte) []byte {
	head, payload, ok := splitFrame(p)
	switch {
	case !ok || head[0] != bitFinal|opClose || len(payload) < 2:
		return p
	case head[1]&0x80 != 0:
		return []byte{head[0], 0x82, 0, 0, 0, 0, 0x03, 0xe8} // with a masking key of zeros
	}
	return joinFrame(head[0], []byte{0x03, 0xe8})
}

// replace returns a function that replaces each occurrence of old with text.
func replace(old, text string) func([]byte) []byte {
	return func(p []byte) []byte { return bytes.ReplaceAll(p, []byte(old), []byte(text)) }
}

// withoutLine returns a function that removes the field with the given name from a server-sent
// event.
func withoutLine(name string) func([]byte) []byte {
	return func(p []byte) []byte {
		before, rest, ok := bytes.Cut(p, []byte(name+": "))
		if !ok || len(before) > 0 && before[len(before)-1] != '\n' {
			return p
		}
		_, after, _ := bytes.Cut(rest, []byte("\n"))
		return append(before, after...)
	}
}
