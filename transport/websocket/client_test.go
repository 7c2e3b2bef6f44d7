package websocket

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket/internal/wswatch"
)

// startScript starts a scripted server for one connection. It reads the request and calls
// f.
func startScript(t *testing.T, f func(p *scriptedPeer, r *http.Request)) *transport.Network {
	return startScriptOn(t, memnet.Listen(), f)
}

func startScriptOn(t *testing.T, l *memnet.Listener, f func(p *scriptedPeer, r *http.Request)) *transport.Network {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		p := &scriptedPeer{Conn: c, t: t, r: bufio.NewReader(c)}
		if r, err := http.ReadRequest(p.r); err == nil {
			f(p, r)
		}
		c.Close()
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return &transport.Network{Dial: l.Dial}
}

// upgrade accepts a handshake. headers are names and values that are added to the response.
func (p *scriptedPeer) upgrade(r *http.Request, headers ...string) {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Add(headers[i], headers[i+1])
	}
	head := switchingProtocols(r, http.Header{}, "", "")
	p.Write(head[:len(head)-2])
	h.Write(p)
	p.Write([]byte("\r\n"))
}

func dialScript(t *testing.T, n *transport.Network, change func(*transport.Request)) (transport.Receiver, error) {
	u := &url.URL{Scheme: "http", Host: "server.example", Path: "/watch", RawQuery: "watch=1"}
	r := &transport.Request{
		URL: u, Header: http.Header{"Authorization": {"Bearer x"}},
		Framings: []framing.Framer{framing.JSON{}, framing.CBORSeq{}},
	}
	if change != nil {
		change(r)
	}
	return (&Client{Network: *n}).Dial(t.Context(), r)
}

// dialUpgrade starts a scripted server that accepts the handshake and calls f. It returns
// the client's Receiver.
func dialUpgrade(t *testing.T, f func(p *scriptedPeer)) transport.Receiver {
	t.Helper()
	n := startScript(t, func(p *scriptedPeer, r *http.Request) {
		p.upgrade(r, "Content-Type", "application/json")
		f(p)
	})
	r, err := dialScript(t, n, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func jsonMessage(n, size int) []byte {
	m, _ := framing.JSON{}.AppendMessage(nil, framing.FromEvent(testEvent(n, size)))
	return m
}

func TestClientSendsAValidHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startScript(t, func(p *scriptedPeer, r *http.Request) {
			want := map[string]string{
				"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13",
				"Authorization":          "Bearer x",
				"Sec-Websocket-Protocol": subprotocolJSON + ", chat", "Sec-Websocket-Extensions": "",
				"Accept": "application/json, application/cbor-seq;q=0.9",
			}
			for name, value := range want {
				if got := r.Header.Get(name); got != value {
					t.Errorf("got %s: %q, want %q", name, got, value)
				}
			}
			if err := wswatch.CheckRequest(httptest.NewRecorder(), r, nil); err != nil || r.Host != "server.example" ||
				r.URL.RawQuery != "watch=1" {
				t.Errorf("got %s %s, %v", r.Host, r.URL, err)
			}
			p.upgrade(r, "Sec-WebSocket-Protocol", "chat", "X-Epoch", "e")
		})
		r, err := dialScript(t, n, func(r *transport.Request) {
			r.Header.Set("Sec-WebSocket-Protocol", "chat")
			r.Header.Set("Connection", "close")
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Header().Get("X-Epoch"); got != "e" {
			t.Errorf("got X-Epoch: %s, want e", got)
		}
		r.Close()
	})
}

// Conformance cases handshake/ws-client-checks-accept, ws-client-checks-unasked,
// error/html-502, limit/redirect.
func TestClientRejectsABadResponse(t *testing.T) {
	status, _ := json.Marshal(kubestatus.Of(&listwatch.Error{
		Code: listwatch.Forbidden, Message: "no " + strings.Repeat("x", 5000),
		Details: &listwatch.Details{Kind: "pods"},
	}))
	reply := func(code int, header, body string) func(p *scriptedPeer, r *http.Request) {
		return func(p *scriptedPeer, r *http.Request) {
			fmt.Fprintf(p, "HTTP/1.1 %d X\r\n%sContent-Length: %d\r\n\r\n%s", code, header, len(body), body)
		}
	}
	upgrade := func(headers ...string) func(p *scriptedPeer, r *http.Request) {
		return func(p *scriptedPeer, r *http.Request) { p.upgrade(r, headers...) }
	}
	tests := []struct {
		name string
		f    func(p *scriptedPeer, r *http.Request)
		code listwatch.Code
	}{
		{"wrong Sec-WebSocket-Accept", func(p *scriptedPeer, r *http.Request) {
			r.Header.Set("Sec-Websocket-Key", sampleKey)
			p.upgrade(r)
		}, listwatch.Unsupported},
		{"subprotocol not offered", upgrade("Sec-WebSocket-Protocol", "chat"), listwatch.Unsupported},
		{
			"subprotocol in upper case", upgrade("Sec-WebSocket-Protocol", strings.ToUpper(subprotocolJSON)),
			listwatch.Unsupported,
		},
		{
			"two subprotocols", upgrade("Sec-WebSocket-Protocol", subprotocolJSON, "Sec-WebSocket-Protocol", "chat"),
			listwatch.Unsupported,
		},
		{"extension", upgrade("Sec-WebSocket-Extensions",
			"permessage-deflate; server_no_context_takeover; client_no_context_takeover"), listwatch.Unsupported},
		{"unknown extension", upgrade("Sec-WebSocket-Extensions", "foo"), listwatch.Unsupported},
		{"upgrade to h2c", func(p *scriptedPeer, r *http.Request) {
			fmt.Fprint(p, "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
		}, listwatch.Unsupported},
		{"no upgrade", reply(200, "", "{}"), listwatch.Unsupported},
		{"redirect", reply(307, "Location: http://elsewhere.example/\r\n", ""), listwatch.Unsupported},
		{"long Status", reply(403, "Content-Type: application/json\r\n", string(status)), listwatch.Forbidden},
		{
			"HTML page of a proxy",
			reply(502, "Content-Type: text/html\r\n", "<html><title>Bad Gateway</title></html>"),
			listwatch.Unavailable,
		},
		{"method", reply(405, "", ""), listwatch.Unsupported},
		{
			"not HTTP", func(p *scriptedPeer, r *http.Request) { fmt.Fprint(p, "SSH-2.0\r\n\r\n") },
			listwatch.Unsupported,
		},
		{"connection closed", func(*scriptedPeer, *http.Request) {}, listwatch.Unavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := dialScript(t, startScript(t, tt.f), nil)
				e := wantCode(t, err, tt.code)
				if tt.name == "long Status" && (e.Details == nil || e.Details.Kind != "pods" || len(e.Message) < 5000) {
					t.Errorf("got a truncated Status: %v", e)
				}
			})
		})
	}
}

// A readOnlyTransport returns bodies that cannot be written, like a wrapper that ignores upgrades.
type readOnlyTransport struct{ http.RoundTripper }

func (t readOnlyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct{ io.ReadCloser }{resp.Body}
	}
	return resp, err
}

func TestDialNeedsARoundTripperThatUpgrades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startScript(t, func(p *scriptedPeer, r *http.Request) {
			p.upgrade(r)
			io.Copy(io.Discard, p) // until the client disconnects
		})
		c := &Client{HTTPClient: &http.Client{Transport: readOnlyTransport{&http.Transport{DialContext: n.Dial}}}}
		_, err := c.Dial(t.Context(), &transport.Request{URL: &url.URL{Scheme: "http", Host: "server.example"}})
		if listwatch.CodeOf(err) != listwatch.Unsupported || !strings.Contains(err.Error(), "RoundTripper") {
			t.Errorf("got error %v, want %v", err, listwatch.Unsupported)
		}
	})
}

func TestDialRequiresAFramingWithMessages(t *testing.T) {
	_, err := new(Client).Dial(t.Context(),
		&transport.Request{URL: &url.URL{Scheme: "http", Host: "x"}, Framings: []framing.Framer{framing.SSE{}}})
	wantCode(t, err, listwatch.Unsupported)
	_, err = new(Client).Dial(t.Context(), &transport.Request{URL: &url.URL{Scheme: "ws", Host: "x"}})
	wantCode(t, err, listwatch.Invalid)
}

// Conformance cases framing/ws-fragmented-in, framing/byte-drip.
func TestClientJoinsFragments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := jsonMessage(1, 100)
		var stream []byte
		stream = append(stream, newFrame(opText, m[:40], false)...)
		stream = append(stream, newFrame(opContinuation, m[40:41], false)...)
		stream = append(stream, newFrame(bitFin|opPing, []byte("between"), false)...)
		stream = append(stream, newFrame(bitFin|opContinuation, m[41:], false)...)
		stream = append(stream, newFrame(bitFin|opText, jsonMessage(2, 70000), false)...)
		for _, step := range []int{1, 3, 4096, len(stream)} {
			r := dialUpgrade(t, func(p *scriptedPeer) {
				for rest := stream; len(rest) > 0; {
					n := min(step, len(rest))
					p.Write(rest[:n])
					rest = rest[n:]
				}
				p.wantFrame(bitFin|opPong, "between")
				p.writeFrame(bitFin|opClose, closePayload(closeGoingAway, ""))
				p.wantClose(closeGoingAway)
			})
			wantEvent(t, r, 1, 100)
			wantEvent(t, r, 2, 70000)
			if _, err := r.Receive(); !errors.Is(err, io.EOF) {
				t.Errorf("got %v, want EOF", err)
			}
			r.Close()
		}
	})
}

// Conformance cases framing/ws-rsv, ws-control-rules, ws-unmasked-server, ws-bad-utf8,
// limit/event-too-big-client.
func TestClientClosesOnInvalidFrames(t *testing.T) {
	text := newFrame(opText, []byte("{"), false)
	tests := []struct {
		name  string
		bytes []byte
		code  int
	}{
		{"masked", newFrame(bitFin|opText, jsonMessage(1, 1), true), closeProtocol},
		{"RSV1", newFrame(bitFin|0x40|opText, jsonMessage(1, 1), false), closeProtocol},
		{"RSV3", newFrame(bitFin|0x10|opPing, nil, false), closeProtocol},
		{"opcode 7", newFrame(bitFin|0x7, nil, false), closeProtocol},
		{"long ping", newFrame(bitFin|opPing, make([]byte, 126), false), closeProtocol},
		{"fragmented ping", newFrame(opPing, nil, false), closeProtocol},
		{"continuation without a message", newFrame(bitFin|opContinuation, []byte("{}"), false), closeProtocol},
		{"message within a message", append(text[:len(text):len(text)], text...), closeProtocol},
		{"close code 1006", newFrame(bitFin|opClose, closePayload(1006, ""), false), closeProtocol},
		{"bad UTF-8", newFrame(bitFin|opText, []byte("{\"a\":\"\xff\"}"), false), closeBadText},
		{
			"bad UTF-8 in fragments",
			append(newFrame(opText, []byte("\xce"), false), newFrame(bitFin|opContinuation, []byte("x"), false)...),
			closeBadText,
		},
		{"too big", []byte{bitFin | opBinary, 127, 0, 0, 1, 0, 0, 0, 0, 0}, closeTooBig},
		{
			"fragments too big",
			append(newFrame(opText, make([]byte, 900), false), newFrame(opContinuation, make([]byte, 900), false)...),
			closeTooBig,
		},
		{"not an event", newFrame(bitFin|opText, []byte("[]"), false), closePolicy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := startScript(t, func(p *scriptedPeer, r *http.Request) {
					p.upgrade(r)
					p.Write(tt.bytes)
					p.wantClose(tt.code)
				})
				r, err := dialScript(t, n, func(r *transport.Request) { r.Limit = 1000 })
				if err != nil {
					t.Fatal(err)
				}
				_, err = r.Receive()
				wantCode(t, err, listwatch.Corrupt)
				if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("got %v, which looks like an end of the stream", err)
				}
				r.Close()
			})
		})
	}
}

// Conformance cases framing/clean-end-vs-abort, framing/truncated-final, drop/ws-1006.
func TestClientDistinguishesEnds(t *testing.T) {
	message := newFrame(bitFin|opText, jsonMessage(1, 100), false)
	tests := []struct {
		name    string
		bytes   []byte
		code    listwatch.Code // the expected code; Unknown for a clean end
		inEvent bool
	}{
		{"1000", newFrame(bitFin|opClose, closePayload(1000, ""), false), listwatch.Unknown, false},
		{"1001", newFrame(bitFin|opClose, closePayload(1001, "drain"), false), listwatch.Unknown, false},
		{"no code", newFrame(bitFin|opClose, nil, false), listwatch.Unavailable, false},
		{"1011", newFrame(bitFin|opClose, closePayload(1011, "oops"), false), listwatch.Unavailable, false},
		{"1013", newFrame(bitFin|opClose, closePayload(1013, "oops"), false), listwatch.Unavailable, false},
		{"4000", newFrame(bitFin|opClose, closePayload(4000, "oops"), false), listwatch.Unavailable, false},
		{"1002", newFrame(bitFin|opClose, closePayload(1002, "oops"), false), listwatch.Corrupt, false},
		{"1009", newFrame(bitFin|opClose, closePayload(1009, "oops"), false), listwatch.Corrupt, false},
		{"cut between messages", message, listwatch.Unavailable, false},
		{
			"cut within a message", append(message[:len(message):len(message)], message[:50]...),
			listwatch.Unavailable, true,
		},
		{"cut in a header", append(message[:len(message):len(message)], message[0]), listwatch.Unavailable, true},
		{"cut between fragments", newFrame(opText, []byte("{"), false), listwatch.Unavailable, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := dialUpgrade(t,
					func(p *scriptedPeer) {
						p.Write(tt.bytes)
						p.Conn.(*memnet.Conn).CloseWrite()
						io.Copy(io.Discard,
							p.r)
					})
				var err error
				for err == nil {
					_, err = r.Receive()
				}
				defer r.Close()
				if tt.code == listwatch.Unknown {
					if err != io.EOF {
						t.Errorf("got %v, want EOF", err)
					}
					return
				}
				e := wantCode(t, err, tt.code)
				if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) != tt.inEvent {
					t.Errorf("got %v, want io.ErrUnexpectedEOF only within an event", err)
				}
				if bytes.Contains(tt.bytes, []byte("oops")) &&
					!(strings.Contains(e.Error(), tt.name) && strings.Contains(e.Error(), "oops")) {
					t.Errorf("got %v, want the code and the reason in it", err)
				}
			})
		})
	}
}

func TestCloseSendsACloseFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan struct{})
		r := dialUpgrade(t, func(p *scriptedPeer) { p.wantClose(closeNormal); close(closed) })
		r.Close()
		<-closed
		_, err := r.Receive()
		wantCode(t, err, listwatch.Unavailable)
	})
}

func TestClientDeterminesTheFraming(t *testing.T) {
	jsonText, cborBytes := jsonMessage(1, 1), []byte(nil)
	cborBytes, _ = framing.CBORSeq{}.AppendMessage(nil, framing.FromEvent(testEvent(1, 1)))
	only := func(f framing.Framer) []framing.Framer { return []framing.Framer{f} }
	both := []framing.Framer{framing.CBORSeq{}, framing.JSON{}}
	tests := []struct {
		name     string
		headers  []string
		framings []framing.Framer
		opcode   byte
		message  []byte
		code     listwatch.Code // of the expected error; zero if the event can be decoded
	}{
		{
			"subprotocol",
			[]string{"Sec-WebSocket-Protocol", subprotocolCBOR, "Content-Type", "application/json"},
			both,
			opBinary, cborBytes, 0,
		},
		{"content type", []string{"Content-Type", "application/json"}, both, opBinary, jsonText, 0},
		{"text", nil, both, opText, jsonText, 0},
		{"binary", nil, both, opBinary, cborBytes, 0},
		{
			"text from a server that echoes subprotocols",
			[]string{"Sec-WebSocket-Protocol", subprotocolCBOR},
			both,
			opText, jsonText, 0,
		},
		{"text not requested", nil, only(framing.CBORSeq{}), opText, jsonText, listwatch.Unsupported},
		{"binary not requested", nil, only(framing.JSON{}), opBinary, cborBytes, listwatch.Unsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := startScript(t, func(p *scriptedPeer, r *http.Request) {
					p.upgrade(r, tt.headers...)
					p.writeFrame(bitFin|tt.opcode, tt.message)
					io.Copy(io.Discard, p.r)
				})
				r, err := dialScript(t, n, func(r *transport.Request) { r.Framings = tt.framings })
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				if tt.code == 0 {
					wantEvent(t, r, 1, 1)
					return
				}
				_, err = r.Receive()
				wantCode(t, err, tt.code)
			})
		})
	}
}

func TestPingsAreActivity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startScript(t, func(p *scriptedPeer, r *http.Request) {
			p.upgrade(r)
			for range 3 {
				time.Sleep(time.Minute)
				p.writeFrame(bitFin|opPing, nil)
			}
			p.writeFrame(bitFin|opClose, closePayload(closeNormal, ""))
			p.wantClose(closeNormal)
		})
		var seen []time.Duration
		start := time.Now()
		r, err := dialScript(t, n, func(r *transport.Request) {
			r.Activity = func() { seen = append(seen, time.Since(start)) }
		})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		r.Receive()
		if got := fmt.Sprint(seen); !strings.HasPrefix(got, "[0s 1m0s 2m0s 3m0s") {
			t.Errorf("got activity at %s, want 0s, 1m, 2m and 3m", got)
		}
	})
}

func TestCloseDoesNotBlockOnAStalledServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		l.Buffer = 4 // smaller than a close frame
		var dialled *memnet.Conn
		n := startScriptOn(t, l, func(p *scriptedPeer, r *http.Request) { p.upgrade(r); io.Copy(io.Discard, p.r) })
		n.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := l.DialConn(ctx)
			dialled = c
			return c, err
		}
		r, err := dialScript(t, n, nil)
		if err != nil {
			t.Fatal(err)
		}
		dialled.Stall(true)
		start := time.Now()
		r.Close()
		if waited := time.Since(start); waited != closeFrameTimeout {
			t.Errorf("Close took %v, want %v", waited, closeFrameTimeout)
		}
		dialled.Stall(false)
	})
}

// FuzzFrameReader checks that the parts of a stream do not depend on how the input is split.
func FuzzFrameReader(f *testing.F) {
	for _, bad := range invalidFrames {
		f.Add(bad.frame, uint8(1), true)
		f.Add(bad.frame, uint8(2), false)
	}
	f.Add(append(newFrame(opText, []byte("{"), false), newFrame(bitFin|opContinuation, []byte("}"), false)...),
		uint8(3), false)
	f.Fuzz(func(t *testing.T, data []byte, step uint8, fromClient bool) {
		whole, unfinished := readParts(data, len(data)+1, fromClient)
		split, splitUnfinished := readParts(data, int(step)+1, fromClient)
		if whole != split || unfinished != splitUnfinished {
			t.Errorf("got\n%s, unfinished %v in one call, but with parts of %d bytes\n%s, unfinished %v",
				whole, unfinished, int(step)+1, split, splitUnfinished)
		}
	})
}

// readParts passes data to a frameReader, step bytes at a time. It returns a description of the
// messages and control frames, and of the error.
func readParts(data []byte, step int, fromClient bool) (description string, unfinished bool) {
	r := newFrameReader(fromClient, false, 1<<20)
	var b strings.Builder
	total := 0
	for piece := range slices.Chunk(bytes.Clone(data), step) {
		for rest := piece; len(rest) > 0; {
			var p part
			var err error
			if p, rest, err = r.next(rest); err != nil {
				return b.String() + err.Error(), r.isMessageUnfinished()
			}
			switch total += len(p.payload); {
			case p.op&bitControl != 0:
				fmt.Fprintf(&b, "%d: %x\n", p.op, p.payload)
			case p.op != 0:
				fmt.Fprintf(&b, "%x", p.payload)
			}
			if p.final {
				fmt.Fprintf(&b, " ends message of type %d\n", p.op)
			}
		}
	}
	if total > len(data) {
		return "more payload than data", false
	}
	return b.String(), r.isMessageUnfinished()
}
