package websocket

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/transporttest"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var subprotocolJSON, subprotocolCBOR = framing.JSON{}.Subprotocol(), framing.CBORSeq{}.Subprotocol()

const (
	closeNormal    = wswatch.CloseNormal
	closeGoingAway = wswatch.CloseGoingAway
	closeProtocol  = wswatch.CloseProtocol
	closeNoStatus  = wswatch.CloseNoStatus
	closeBadText   = wswatch.CloseBadText
	closePolicy    = wswatch.ClosePolicy
	closeTooBig    = wswatch.CloseTooBig
)

// A testServer serves watches and passes each stream to the test.
type testServer struct {
	*transporttest.TestServer
	t testing.TB
}

func startServer(t testing.TB, c transporttest.ServerConfig) *testServer {
	return &testServer{transporttest.StartServer(t, c), t}
}

func startInMemory(t testing.TB, o transport.Options) *testServer {
	return startServer(t, transporttest.ServerConfig{Server: &Server{}, Options: o})
}

// startOnSocket starts a server on a socket.
func startOnSocket(t testing.TB, secure bool) *testServer {
	return startServer(t, transporttest.ServerConfig{Server: &Server{}, TLS: secure, Sockets: true})
}

// dial opens a connection, with TLS if the server uses it.
func (s *testServer) dial() net.Conn {
	s.t.Helper()
	dial := s.Network.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	c, err := dial(context.Background(), "tcp", s.URL.Host)
	if err != nil {
		s.t.Fatal(err)
	}
	if config := s.Network.TLS; config != nil {
		config = config.Clone()
		config.ServerName = s.URL.Hostname()
		c = tls.Client(c, config)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// A scriptedPeer is one end of a WebSocket that a test scripts frame by frame.
type scriptedPeer struct {
	net.Conn
	t      testing.TB
	r      *bufio.Reader
	masked bool
}

const sampleKey = "dGhlIHNhbXBsZSBub25jZQ=="

// handshakeRequest returns the text of a valid handshake with additional headers. An empty
// value removes the header.
func handshakeRequest(headers ...string) string {
	h := map[string]string{
		"Host": "127.0.0.1", "Upgrade": "websocket", "Connection": "Upgrade",
		"Sec-WebSocket-Key": sampleKey, "Sec-WebSocket-Version": "13",
	}
	for i := 0; i < len(headers); i += 2 {
		h[headers[i]] = headers[i+1]
	}
	text := "GET /watch?watch=1 HTTP/1.1\r\n"
	for k, v := range h {
		if v != "" {
			text += k + ": " + v + "\r\n"
		}
	}
	return text + "\r\n"
}

// roundTrip sends a request and returns the response.
func (s *testServer) roundTrip(text string) (*scriptedPeer, *http.Response) {
	s.t.Helper()
	p := &scriptedPeer{Conn: s.dial(), t: s.t, masked: true}
	p.r = bufio.NewReader(p)
	if _, err := io.WriteString(p, text); err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.ReadResponse(p.r, &http.Request{Method: "GET"})
	if err != nil {
		s.t.Fatal(err)
	}
	return p, resp
}

// watch opens a watch with a scripted client.
func (s *testServer) watch(headers ...string) (*scriptedPeer, *transporttest.Stream) {
	s.t.Helper()
	p, resp := s.roundTrip(handshakeRequest(headers...))
	if resp.StatusCode != http.StatusSwitchingProtocols {
		s.t.Fatalf("got %s, want 101", resp.Status)
	}
	return p, <-s.Streams
}

// writeFrame writes one frame. first is its first byte: FIN, the reserved bits and the opcode.
func (p *scriptedPeer) writeFrame(first byte, payload []byte) {
	p.t.Helper()
	if _, err := p.Write(newFrame(first, payload, p.masked)); err != nil {
		p.t.Fatal(err)
	}
}

// newFrame returns a frame. first is its first byte: FIN, the reserved bits and the opcode.
func newFrame(first byte, payload []byte, masked bool) []byte {
	frame := appendHeader(nil, first, len(payload))
	if !masked {
		return append(frame, payload...)
	}
	frame[1] |= bitMask
	key := [4]byte{1, 2, 3, 4}
	frame = append(frame, key[:]...)
	for i, b := range payload {
		frame = append(frame, b^key[i%4])
	}
	return frame
}

// readFrame reads one frame and returns its first byte, whether it is masked, and its payload.
func (p *scriptedPeer) readFrame() (first byte, masked bool, payload []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(p.r, head[:]); err != nil {
		return 0, false, nil, err
	}
	n := uint64(head[1] & bitsLength)
	switch n {
	case 126:
		var b [2]byte
		io.ReadFull(p.r, b[:])
		n = uint64(binary.BigEndian.Uint16(b[:]))
	case 127:
		var b [8]byte
		io.ReadFull(p.r, b[:])
		n = binary.BigEndian.Uint64(b[:])
	}
	var key [4]byte
	if masked = head[1]&bitMask != 0; masked {
		io.ReadFull(p.r, key[:])
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(p.r, payload)
	for i := range payload {
		payload[i] ^= key[i%4]
	}
	return head[0], masked, payload, err
}

// wantFrame reads one frame and compares it with the expected one.
func (p *scriptedPeer) wantFrame(first byte, payload string) {
	p.t.Helper()
	gotFirst, masked, got, err := p.readFrame()
	if err != nil || gotFirst != first || string(got) != payload {
		p.t.Fatalf("got frame %#x %.80q, %v; want %#x %.80q", gotFirst, got, err, first, payload)
	}
	if masked == p.masked {
		p.t.Fatalf("got a frame whose mask is %v", masked)
	}
}

// wantClose reads frames until a close frame and compares its code with the expected one.
func (p *scriptedPeer) wantClose(code int) {
	p.t.Helper()
	for {
		first, _, payload, err := p.readFrame()
		if err != nil {
			p.t.Fatalf("got %v, want close %d", err, code)
		}
		if first != bitFin|opClose {
			continue
		}
		if code == closeNoStatus {
			if len(payload) != 0 {
				p.t.Fatalf("got close with %q, want an empty payload", payload)
			}
			return
		}
		if len(payload) < 2 || int(binary.BigEndian.Uint16(payload)) != code {
			p.t.Fatalf("got close with %q, want %d", payload, code)
		}
		return
	}
}

// wantEOF checks that the connection ends cleanly without further bytes.
func (p *scriptedPeer) wantEOF() {
	p.t.Helper()
	if rest, err := io.ReadAll(p.r); err != nil || len(rest) > 0 {
		p.t.Fatalf("got %q, %v; want the end of the connection", rest, err)
	}
}

// closePayload returns the payload of a close frame.
func closePayload(code int, reason string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...)
}

// testEvent returns event n, of about size bytes.
func testEvent(n, size int) listwatch.Event {
	data := fmt.Sprintf(`{"metadata":{"name":"o%d"},"text":"ü %s"}`, n, bytes.Repeat([]byte("x"), size))
	return listwatch.Event{
		Type: listwatch.Modified, Version: listwatch.Version(n + 1), Object: &listwatch.Object{Data: []byte(data)},
	}
}

// send sends events in one batch.
func send(t testing.TB, s *transporttest.Stream, events ...listwatch.Event) {
	t.Helper()
	if err := trySend(s, events...); err != nil {
		t.Error(err)
	}
}

func trySend(s *transporttest.Stream, events ...listwatch.Event) error {
	var frames [][]byte
	for _, e := range events {
		f, err := s.Encoder.Frame(framing.FromEvent(e))
		if err != nil {
			return err
		}
		frames = append(frames, f)
	}
	return s.Sender.Send(frames)
}

// wantEvent receives an event and compares it with testEvent(n, size).
func wantEvent(t testing.TB, r transport.Receiver, n, size int) {
	t.Helper()
	got, err := r.Receive()
	if err != nil {
		t.Fatalf("event %d: %v", n, err)
	}
	if want := testEvent(n, size); got.Type != "MODIFIED" || string(got.Object) != string(want.Object.Data) {
		t.Fatalf("event %d: got %s %.80s, want %.80s", n, got.Type, got.Object, want.Object.Data)
	}
}

// wantCode checks that err is a *listwatch.Error with the code, and returns this Error.
func wantCode(t testing.TB, err error, code listwatch.Code) *listwatch.Error {
	t.Helper()
	e, ok := errors.AsType[*listwatch.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("got error %v, want code %v", err, code)
	}
	return e
}

func jsonRequest(s *testServer) *transport.Request {
	return &transport.Request{URL: s.URL, Framings: []framing.Framer{framing.JSON{}}}
}
