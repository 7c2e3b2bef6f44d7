package websocket

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// deflateAccepted reports whether the server accepts an offer.
func deflateAccepted(offer string) bool {
	_, agreed := acceptDeflate(http.Header{"Sec-Websocket-Extensions": {offer}}, false)
	return agreed.deflate
}

// deflate compresses p as rfc7692#section-7.2.1 specifies.
func deflate(p []byte) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression)
	w.Write(p)
	w.Flush()
	return bytes.TrimSuffix(b.Bytes(), []byte("\x00\x00\xff\xff"))
}

// wantInflated decompresses message and compares it with the expected one.
func wantInflated(t *testing.T, message []byte, want string) {
	t.Helper()
	// Append the marker of rfc7692#section-7.2.2, and a final block.
	p, err := io.ReadAll(flate.NewReader(strings.NewReader(string(message) + "\x00\x00\xff\xff\x01\x00\x00\xff\xff")))
	if err != nil || string(p) != want {
		t.Errorf("got message %.80q, %v; want %.80q", p, err, want)
	}
}

// Conformance cases comp/ws-deflate, comp/ws-no-context.
func TestServerEvaluatesOffersOfDeflate(t *testing.T) {
	for offer, want := range map[string]bool{
		"":                            false,
		"permessage-deflate":          true,
		"x-webkit-deflate-frame":      false,
		"permessage-deflated":         false,
		"PERMESSAGE-DEFLATE":          false,
		separateDeflate:               true,
		"permessage-deflate; unknown": false,
		"foo, permessage-deflate":     true,
		"permessage-deflate;":         false,
		"permessage-deflate; client_no_context_takeover; client_no_context_takeover": false,
		"permessage-deflate; server_no_context_takeover=1":                           false,
		// Browsers send offers with client_max_window_bits.
		"permessage-deflate; client_max_window_bits":                        true,
		"permessage-deflate; client_max_window_bits=8":                      true,
		`permessage-deflate ;client_max_window_bits = "15"`:                 true,
		"permessage-deflate; client_max_window_bits=16":                     false,
		"permessage-deflate; client_max_window_bits=08":                     false,
		"permessage-deflate; client_max_window_bits=":                       false,
		"permessage-deflate; server_max_window_bits=10":                     false,
		"permessage-deflate; server_max_window_bits=10, permessage-deflate": true,
	} {
		if got := deflateAccepted(offer); got != want {
			t.Errorf("%q: got %t, want %t", offer, got, want)
		}
	}
}

// Conformance cases comp/ws-deflate, comp/ws-declined.
func TestServerCompressesIfItAgreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInMemory(t, transport.Options{})
		for offer, agreed := range map[string]bool{
			"": false, "permessage-deflate; server_max_window_bits=9": false,
			"permessage-deflate; client_max_window_bits":                                                       true,
			"foo; bar=1, permessage-deflate; unknown, permessage-deflate ; " + "client_max_window_bits=\"12\"": true,
		} {
			p, resp := s.roundTrip(handshakeRequest("Sec-WebSocket-Extensions", offer))
			want := ""
			if agreed {
				want = separateDeflate
			}
			if got := resp.Header.Get("Sec-Websocket-Extensions"); got != want {
				t.Errorf("offer %q: got the answer %q, want %q", offer, got, want)
			}
			stream := <-s.Streams
			send(t, stream, testEvent(1, 10), testEvent(2, 1000), testEvent(3, 1000))
			p.wantFrame(bitFin|opText, string(jsonMessage(1, 10)))
			for n := 2; n <= 3; n++ {
				if !agreed {
					p.wantFrame(bitFin|opText, string(jsonMessage(n, 1000)))
					continue
				}
				first, _, message, err := p.readFrame()
				if first != bitFin|bitRSV1|opText || err != nil {
					t.Errorf("%q: got %#x %x, %v", offer, first, message, err)
				}
				wantInflated(t, message, string(jsonMessage(n, 1000)))
			}
			stream.Sender.Close(transport.Finished)
			p.wantClose(closeNormal)
			p.Close()
		}
	})
}

func TestServerIgnoresCompressedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, stream := startInMemory(t, transport.Options{}).watch("Sec-WebSocket-Extensions", permessageDeflate)
		p.writeFrame(bitFin|bitRSV1|opText, deflate([]byte("ping")))
		p.writeFrame(bitRSV1|opBinary, []byte("not compressed"))
		p.writeFrame(bitFin|opContinuation, nil)
		p.writeFrame(bitFin|opPing, nil)
		p.wantFrame(bitFin|opPong, "")
		stream.Sender.Close(transport.Finished)
		p.wantClose(closeNormal)
		p.Close()
	})
}

func TestServerRejectsInvalidCompressedFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for first, want := range map[byte]int{
			// rfc7692#section-6: only the first frame of a message may have RSV1, and no frame may
			// have RSV2.
			bitFin | bitRSV1 | opPing:         closeProtocol,
			bitFin | bitRSV1 | opContinuation: closeProtocol,
			bitFin | 0x20 | opText:            closeProtocol,
			bitFin | bitRSV1 | 0x20 | opText:  closeProtocol,
		} {
			s := startInMemory(t, transport.Options{})
			p, stream := s.watch("Sec-WebSocket-Extensions", permessageDeflate)
			p.writeFrame(first, deflate([]byte("{}")))
			p.wantClose(want)
			p.Close()
			<-stream.Done()
		}
	})
}

// A client that excludes context takeover, as gorilla's does, gets messages that do not refer to
// earlier ones.
func TestServerSharesHistoryUnlessExcluded(t *testing.T) {
	for _, tt := range []struct {
		offer    string
		segments bool
		answer   string
	}{
		{permessageDeflate, true, sharedDeflate},
		{"permessage-deflate; client_max_window_bits", true, sharedDeflate},
		{"permessage-deflate; client_max_window_bits", false, separateDeflate},
		{"permessage-deflate; server_no_context_takeover", true, separateDeflate},
		{"permessage-deflate; client_no_context_takeover; server_no_context_takeover", true, separateDeflate},
		{"permessage-deflate; server_max_window_bits=10, permessage-deflate", true, sharedDeflate},
		{"permessage-deflate; server_max_window_bits=10", true, ""},
		{"", true, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, resp := startInMemory(t,
				transport.Options{Segments: tt.segments}).roundTrip(handshakeRequest("Sec-WebSocket-Extensions",
				tt.offer))
			if got := resp.Header.Get("Sec-Websocket-Extensions"); got != tt.answer {
				t.Errorf("offer %q, segments %t: got the answer %q, want %q", tt.offer, tt.segments, got, tt.answer)
			}
			p.Close()
		})
	}
}

// dialDeflate starts a scripted server that responds to the offer of permessage-deflate
// with extensions and calls f, which may be nil. It returns the client's Receiver.
func dialDeflate(t *testing.T, extensions string, f func(p *scriptedPeer)) (transport.Receiver, error) {
	t.Helper()
	n := startScript(t, func(p *scriptedPeer, r *http.Request) {
		if got := r.Header.Get("Sec-Websocket-Extensions"); got != sharedDeflate {
			t.Errorf("got the offer %q", got)
		}
		p.upgrade(r, "Content-Type", "application/json", "Sec-Websocket-Extensions", extensions)
		if f != nil {
			f(p)
		}
	})
	return dialScript(t, n, func(r *transport.Request) { r.Codings, r.Limit = transport.Codings(), 4<<10 })
}

func TestClientChecksTheAnswerToItsOffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for extensions, want := range map[string]bool{
			separateDeflate: true,
			"permessage-deflate; server_no_context_takeover":                           true,
			"permessage-deflate; server_no_context_takeover; server_max_window_bits=9": true,
			"permessage-deflate": true,
			sharedDeflate:        true,
			// The client did not offer what these answers contain.
			"permessage-deflate; server_no_context_takeover; client_max_window_bits=9": false,
			"permessage-deflate; server_no_context_takeover; server_max_window_bits":   false,
			"permessage-deflate; server_no_context_takeover; unknown":                  false,
			"permessage-deflate; server_no_context_takeover, permessage-deflate":       false,
			"foo": false,
		} {
			r, err := dialDeflate(t, extensions, nil)
			if want != (err == nil) {
				t.Errorf("%q: %v", extensions, err)
			}
			if err == nil {
				r.Close()
			} else {
				wantCode(t, err, listwatch.Unsupported)
			}
		}
	})
}

func TestClientReadsCompressedAndPlainMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := dialDeflate(t, separateDeflate, func(p *scriptedPeer) {
			p.writeFrame(bitFin|bitRSV1|opText, deflate(jsonMessage(1, 1000)))
			p.writeFrame(bitFin|opText, jsonMessage(2, 1000)) // this message is not compressed
			m := deflate(jsonMessage(3, 1000))
			p.writeFrame(bitRSV1|opText, m[:1])
			p.writeFrame(bitFin|opPing, []byte("between"))
			p.writeFrame(opContinuation, nil)
			p.writeFrame(bitFin|opContinuation, m[1:])
			p.wantFrame(bitFin|opPong, "between")
			p.writeFrame(bitFin|opClose, closePayload(closeNormal, ""))
			p.wantClose(closeNormal)
		})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 3 {
			wantEvent(t, r, n+1, 1000)
		}
		if _, err := r.Receive(); err != io.EOF {
			t.Errorf("got %v, want %v", err, io.EOF)
		}
	})
}

// The compressed messages refer to text up to 32 KiB before them. Uncompressed messages between
// them do not enter the history.
func TestClientReadsMessagesWithHistory(t *testing.T) {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression)
	var messages [][]byte
	var sizes []int
	for i := range 60 {
		sizes = append(sizes, 100+i*131%3000)
		b.Reset()
		w.Write(jsonMessage(i+1, sizes[i]))
		w.Flush()
		messages = append(messages, bytes.Clone(bytes.TrimSuffix(b.Bytes(), []byte("\x00\x00\xff\xff"))))
	}
	synctest.Test(t, func(t *testing.T) {
		for _, shared := range []bool{true, false} {
			answer := separateDeflate
			if shared {
				answer = sharedDeflate
			}
			r, err := dialDeflate(t, answer, func(p *scriptedPeer) {
				for i, m := range messages {
					p.Write(newFrame(bitFin|bitRSV1|opText, m, false))
					if i%7 == 0 {
						p.Write(newFrame(bitFin|opText, jsonMessage(1, 50), false))
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			wantEvent(t, r, 1, sizes[0])
			wantEvent(t, r, 1, 50)
			if !shared { // the server violates its own answer
				_, err := r.Receive()
				wantCode(t, err, listwatch.Corrupt)
				continue
			}
			for i := range messages[1:] {
				wantEvent(t, r, i+2, sizes[i+1])
				if (i+1)%7 == 0 {
					wantEvent(t, r, 1, 50)
				}
			}
			r.Close()
		}
	})
}

func TestClientRejectsInvalidCompression(t *testing.T) {
	bomb := deflate(make([]byte, 1<<20))
	large := deflate(append(jsonMessage(1, 10), bytes.Repeat([]byte(" "), 4<<10)...))
	tests := []struct {
		name   string
		frames func(p *scriptedPeer)
		close  int // the expected close code; zero if the server does not check it
	}{
		{"RSV1 in a continuation", func(p *scriptedPeer) {
			p.writeFrame(bitRSV1|opText, nil)
			p.writeFrame(bitFin|bitRSV1|opContinuation, deflate(jsonMessage(1, 10)))
		}, closeProtocol},
		{"RSV1 in a ping", func(p *scriptedPeer) { p.writeFrame(bitFin|bitRSV1|opPing, nil) }, closeProtocol},
		{"RSV2", func(p *scriptedPeer) { p.writeFrame(bitFin|0x20|opText, jsonMessage(1, 10)) }, closeProtocol},
		{"not deflate", func(p *scriptedPeer) { p.writeFrame(bitFin|bitRSV1|opText, []byte("\xff\xff\xff")) }, 0},
		{"half a message", func(p *scriptedPeer) {
			m := deflate(jsonMessage(1, 1000))
			p.writeFrame(bitFin|bitRSV1|opText, m[:len(m)/2])
		}, 0},
		{
			"text that is not UTF-8",
			func(p *scriptedPeer) { p.writeFrame(bitFin|bitRSV1|opText, deflate([]byte("{\"\xff\"}"))) }, closeBadText,
		},
		{"a bomb", func(p *scriptedPeer) { p.writeFrame(bitFin|bitRSV1|opText, bomb) }, closeTooBig},
		{"slightly too big", func(p *scriptedPeer) { p.writeFrame(bitFin|bitRSV1|opText, large) }, closeTooBig},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, err := dialDeflate(t, separateDeflate, func(p *scriptedPeer) {
					tt.frames(p)
					if tt.close != 0 {
						p.wantClose(tt.close)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					_, err := r.Receive()
					wantCode(t, err, listwatch.Corrupt)
				}
			})
		})
	}
}

func TestClientRejectsUnagreedCompression(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := dialUpgrade(t, func(p *scriptedPeer) {
			p.writeFrame(bitFin|bitRSV1|opText, deflate(jsonMessage(1, 10)))
			p.wantClose(closeProtocol)
		})
		_, err := r.Receive()
		wantCode(t, err, listwatch.Corrupt)
	})
}

// FuzzExtensions parses arbitrary headers.
func FuzzExtensions(f *testing.F) {
	f.Add(separateDeflate)
	f.Add(sharedDeflate)
	f.Add(`foo; a="b, c", permessage-deflate; client_max_window_bits`)
	f.Fuzz(func(t *testing.T, header string) {
		h := http.Header{"Sec-Websocket-Extensions": {header}}
		for _, segments := range []bool{false, true} {
			answer, offered := acceptDeflate(h, segments)
			if offered.deflate && !strings.Contains(header, permessageDeflate) {
				t.Errorf("%q is taken for an offer", header)
			}
			if answer == "" {
				continue
			}
			if got, ok := parseAgreement(http.Header{"Sec-Websocket-Extensions": {answer}}); !ok || got != offered {
				t.Errorf("%q: the answer %q is taken for %+v, want %+v", header, answer, got, offered)
			}
		}
		if agreed, ok := parseAgreement(h); agreed.deflate && (!ok || !strings.Contains(header, permessageDeflate)) {
			t.Errorf("%q is taken for an agreement", header)
		}
	})
}

// FuzzCompressedMessage reads arbitrary bytes as the second compressed message.
func FuzzCompressedMessage(f *testing.F) {
	f.Add(deflate(jsonMessage(1, 1000)))
	f.Add(deflate(make([]byte, 1<<20)))
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, message []byte) {
		synctest.Test(t, func(t *testing.T) {
			r, err := dialDeflate(t, sharedDeflate, func(p *scriptedPeer) {
				p.Write(newFrame(bitFin|bitRSV1|opText, deflate(jsonMessage(1, 1000)), false))
				p.Write(newFrame(bitFin|bitRSV1|opText, message, false))
			})
			if err != nil {
				t.Fatal(err)
			}
			wantEvent(t, r, 1, 1000)
			e, err := r.Receive()
			if err == nil && len(e.Object) > 4<<10 {
				t.Errorf("got an object of %d bytes, more than the limit", len(e.Object))
			}
			if _, ok := errors.AsType[*listwatch.Error](err); err != nil && !ok {
				t.Errorf("got %v, want a *listwatch.Error", err)
			}
			r.Close()
		})
	})
}

// A library may mistake the end of the connection for the end of a compressed message.
func TestACutCompressedMessageIsNotAnEvent(t *testing.T) {
	frame := newFrame(bitFin|bitRSV1|opText,
		deflate([]byte(`{"type":"ADDED","object":{"metadata":{"name":"a","note":"`+strings.Repeat("üß€😀", 300)+`"}}}`)),
		false)
	for n := 1; n < len(frame); n++ {
		synctest.Test(t, func(t *testing.T) {
			r, err := dialDeflate(t, separateDeflate, func(p *scriptedPeer) {
				if _, err := p.Write(frame[:n]); err != nil {
					t.Error(err)
				}
				p.Close()
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Receive()
			wantCode(t, err, listwatch.Unavailable)
		})
	}
}
