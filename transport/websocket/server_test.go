package websocket

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/transporttest"
)

// Conformance case handshake/ws-accept.
func TestServerAcceptsTheKeyOfTheRFC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		middleware := func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				maps.Copy(w.Header(), http.Header{
					"X-Epoch": {"e1"}, "Content-Length": {"7"}, "Sec-Websocket-Protocol": {"x"},
					"Connection": {"close"},
				})
				next.ServeHTTP(w, r)
			})
		}
		s := startServer(t, transporttest.ServerConfig{Server: &Server{}, Handler: middleware})
		p, resp := s.roundTrip(handshakeRequest("Sec-WebSocket-Extensions", "permessage-deflated"))
		want := map[string]string{
			"Sec-Websocket-Accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "Upgrade": "websocket", "Connection": "Upgrade",
			"Content-Type": "application/json", "X-Epoch": "e1",
			"Sec-Websocket-Protocol": "", "Sec-Websocket-Extensions": "", "Content-Length": "",
		}
		for name, value := range want {
			if got := resp.Header.Get(name); got != value || len(resp.Header[name]) > 1 {
				t.Errorf("got %s: %q, want %q", name, resp.Header[name], value)
			}
		}
		(<-s.Streams).Sender.Close(transport.Abort)
		p.wantEOF()
	})
}

// Conformance case handshake/ws-connection-list.
func TestServerClaimsUpgrades(t *testing.T) {
	tests := []struct {
		connection, upgrade, proto string
		want                       bool
	}{
		{"Upgrade", "websocket", "HTTP/1.1", true},
		{"keep-alive, Upgrade", "WebSocket", "HTTP/1.1", true},
		{"UPGRADE,keep-alive", "h2c, websocket", "HTTP/1.1", true},
		{"keep-alive", "websocket", "HTTP/1.1", false},
		{"Upgrade", "h2c", "HTTP/1.1", false},
		{"Upgrade", "websocketx", "HTTP/1.1", false},
		{"Upgrade", "websocket", "HTTP/1.0", false},
		{"Upgrade", "websocket", "HTTP/2.0", true}, // how an extended CONNECT appears
	}
	for _, tt := range tests {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Connection", tt.connection)
		r.Header.Set("Upgrade", tt.upgrade)
		r.ProtoMajor, r.ProtoMinor, _ = http.ParseHTTPVersion(tt.proto)
		if got := new(Server).Claims(r); got != tt.want {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		p, stream := startInMemory(t, transport.Options{}).watch("Connection", "keep-alive, uPGRADE", "Upgrade",
			"WebSocket")
		send(t, stream, testEvent(1, 1))
		if first, _, _, err := p.readFrame(); first != bitFin|opText || err != nil {
			t.Errorf("got frame %#x, %v", first, err)
		}
	})
}

// Conformance cases handshake/ws-version, ws-no-key, ws-bad-key, ws-not-get, accept-406,
// error-before-upgrade, cors/ws-foreign-origin, ws-null-origin.
func TestServerRefusesInvalidHandshakes(t *testing.T) {
	post := strings.Replace(handshakeRequest(), "GET", "POST", 1)
	tests := []struct {
		name, text, header, value string
		status                    int
	}{
		{"version 8", handshakeRequest("Sec-WebSocket-Version", "8"), "Sec-Websocket-Version", "13", 426},
		{"no version", handshakeRequest("Sec-WebSocket-Version", ""), "Sec-Websocket-Version", "13", 426},
		{"no key", handshakeRequest("Sec-WebSocket-Key", ""), "", "", 400},
		{"short key", handshakeRequest("Sec-WebSocket-Key", "c2hvcnQ="), "", "", 400},
		{
			"long key", handshakeRequest("Sec-WebSocket-Key", base64.StdEncoding.EncodeToString(make([]byte, 17))), "",
			"", 400,
		},
		{"key that is not base64", handshakeRequest("Sec-WebSocket-Key", "not base64 at all, no!"), "", "", 400},
		{"POST", post, "Allow", "GET", 405},
		{"body", strings.Replace(handshakeRequest("Content-Length", "2")+"hi", "POST", "GET", 1), "", "", 400},
		{"foreign origin", handshakeRequest("Origin", "https://evil.example"), "", "", 403},
		{"look-alike origin", handshakeRequest("Origin", "http://127.0.0.1.evil.example"), "", "", 403},
		{"null origin", handshakeRequest("Origin", "null"), "", "", 403},
		{"accept", handshakeRequest("Accept", "text/event-stream"), "", "", 406},
		{"accept excludes JSON", handshakeRequest("Accept", "application/json;q=0"), "", "", 406},
	}
	synctest.Test(t, func(t *testing.T) {
		s := startInMemory(t, transport.Options{})
		for _, tt := range tests {
			_, resp := s.roundTrip(tt.text)
			if resp.StatusCode != tt.status || tt.header != "" && resp.Header.Get(tt.header) != tt.value {
				t.Errorf("%s: got %d with %v, want %d", tt.name, resp.StatusCode, resp.Header, tt.status)
			}
			var status kubestatus.Status
			body, _ := io.ReadAll(resp.Body)
			if err := json.Unmarshal(body, &status); err != nil || status.Kind != "Status" || status.Code != tt.status {
				t.Errorf("%s: got body %s, %v, want a Status of code %d", tt.name, body, err, tt.status)
			}
		}
	})
}

// A plainWriter does not support Hijack.
type plainWriter struct{ http.ResponseWriter }

func TestServerNeedsAHijackableConnection(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header = http.Header{"Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {sampleKey}}
	w := httptest.NewRecorder()
	_, err := (&Server{}).Accept(plainWriter{w}, r, transport.Options{})
	wantCode(t, err, listwatch.Unsupported)
	if w.Body.Len() > 0 || w.Flushed || w.Code != http.StatusOK {
		t.Errorf("Accept has written a response: %+v", w)
	}
}

// Conformance cases cors/ws-no-origin, cors/same-origin.
func TestServerChecksTheOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, transporttest.ServerConfig{
			Server: &Server{}, Options: transport.Options{AllowOrigins: []string{"https://*.example.com"}},
		})
		for _, origin := range []string{"", "http://127.0.0.1", "HTTP://127.0.0.1:80", "https://app.example.com"} {
			_, stream := s.watch("Origin", origin)
			stream.Sender.Close(transport.Abort)
		}
		if _,
			resp := s.roundTrip(handshakeRequest("Origin",
			"https://example.com")); resp.StatusCode != http.StatusForbidden {
			t.Errorf("got %s, want 403", resp.Status)
		}
	})
}

// Conformance cases handshake/ws-subprotocol-unknown, ws-subprotocol-chosen,
// auth/ws-bearer-subprotocol, accept-default, accept-q.
func TestServerChoosesSubprotocolAndFraming(t *testing.T) {
	bearer := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte("secret"))
	const jsonType, cborType = "application/json", "application/cbor-seq"
	tests := []struct{ offer, accept, subprotocol, mediaType string }{
		{"", "", "", jsonType},
		{"", "*/*", "", jsonType},
		{"", "application/*", "", jsonType},
		{"", cborType, "", cborType},
		{"", "application/json;q=0.5, application/cbor-seq", "", cborType},
		{"", "text/event-stream, application/json;q=0.1", "", jsonType},
		{"chat", "", "", jsonType},
		{"base64.binary.k8s.io", "", "", jsonType},
		{"chat, " + subprotocolJSON, cborType, subprotocolJSON, jsonType},
		{subprotocolCBOR + ", " + subprotocolJSON, "", subprotocolCBOR, cborType},
		{subprotocolJSON, "text/html", subprotocolJSON, jsonType},
		{"LISTWATCH.V1.JSON", "", "", jsonType},
		{bearer + ",v1", "", "v1", jsonType},
		{bearer + ", v1", cborType, "v1", cborType},
		{bearer, "", "", jsonType},
	}
	synctest.Test(t, func(t *testing.T) {
		s := startInMemory(t, transport.Options{})
		for _, tt := range tests {
			_, resp := s.roundTrip(handshakeRequest("Sec-WebSocket-Protocol", tt.offer, "Accept", tt.accept))
			if resp.StatusCode != http.StatusSwitchingProtocols {
				t.Errorf("%+v: got %s", tt, resp.Status)
				continue
			}
			stream := <-s.Streams
			chosen := resp.Header["Sec-Websocket-Protocol"]
			if strings.Join(chosen, "|") != tt.subprotocol || len(chosen) == 1 && chosen[0] == "" {
				t.Errorf("%+v: got subprotocol %q", tt, chosen)
			}
			if got := stream.Encoder.Framer.MediaType(); got != tt.mediaType {
				t.Errorf("%+v: got %s", tt, got)
			}
			stream.Sender.Close(transport.Abort)
		}
	})
}

func TestSubprotocolNeedsAnAvailableFraming(t *testing.T) {
	only, err := framing.NewRegistry(framing.JSON{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := startInMemory(t, transport.Options{Framings: only})
		_, resp := s.roundTrip(handshakeRequest("Sec-WebSocket-Protocol", subprotocolCBOR+", v1"))
		if got := resp.Header.Get("Sec-Websocket-Protocol"); got != "v1" {
			t.Errorf("got subprotocol %q, want v1", got)
		}
		(<-s.Streams).Sender.Close(transport.Abort)
	})
}

// An otherJSON is a framing that is not part of this module.
type otherJSON struct{ framing.JSON }

func (otherJSON) MediaType() string   { return "application/vnd.example+json" }
func (otherJSON) Subprotocol() string { return "example.v1.json" }

func TestSubprotocolSelectsAnyFraming(t *testing.T) {
	offer, err := framing.NewRegistry(framing.JSON{}, otherJSON{})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := startInMemory(t, transport.Options{Framings: offer})
		_, resp := s.roundTrip(handshakeRequest("Sec-WebSocket-Protocol", "v2, example.v1.json, "+subprotocolJSON))
		if got := resp.Header.Get("Sec-Websocket-Protocol"); got != "example.v1.json" {
			t.Errorf("got subprotocol %q, want example.v1.json", got)
		}
		stream := <-s.Streams
		if stream.Encoder.Framer != (otherJSON{}) {
			t.Errorf("got framing %T, want otherJSON", stream.Encoder.Framer)
		}
		stream.Sender.Close(transport.Abort)

		client := &Client{Network: s.Network}
		r, err := client.Dial(t.Context(),
			&transport.Request{URL: s.URL, Framings: []framing.Framer{otherJSON{}, framing.JSON{}}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got := r.Header().Get("Sec-Websocket-Protocol"); got != "example.v1.json" {
			t.Errorf("the client got subprotocol %q, want example.v1.json", got)
		}
		(<-s.Streams).Sender.Close(transport.Finished)
	})
}

// Conformance cases framing/ws-one-message-one-event, ws-opcode, ws-unmasked-server.
func TestServerWritesOneFramePerEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInMemory(t, transport.Options{})
		for _, f := range []framing.MessageFramer{framing.JSON{}, framing.CBORSeq{}} {
			p, stream := s.watch("Accept", f.MediaType())
			first := byte(bitFin | opText)
			if f.Binary() {
				first = bitFin | opBinary
			}
			var events []listwatch.Event
			for size := range 200 { // more than 125 bytes need a longer header
				events = append(events, testEvent(size, size))
			}
			events = append(events, testEvent(0, 0xFF00), testEvent(0, 0x10000))
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				send(t, stream, events...)
			}()
			for _, e := range events {
				want, _ := f.AppendMessage(nil, framing.FromEvent(e))
				p.wantFrame(first, string(want))
			}
			<-sent // an Abort that interrupts Send is an error
			stream.Sender.Close(transport.Abort)
			p.wantEOF()
		}
	})
}

func TestFrameLengthsAreShortest(t *testing.T) {
	for _, tt := range []struct {
		n    int
		want string
	}{
		{0, "\x81\x00"},
		{125, "\x81\x7d"},
		{126, "\x81\x7e\x00\x7e"},
		{0xFFFF, "\x81\x7e\xff\xff"},
		{0x10000, "\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00"},
	} {
		if got := appendHeader(nil, bitFin|opText, tt.n); string(got) != tt.want {
			t.Errorf("%d bytes: got header %q, want %q", tt.n, got, tt.want)
		}
	}
}

func TestServerReadsFramesSentWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInMemory(t, transport.Options{})
		text := handshakeRequest() + string(newFrame(bitFin|opPing, []byte("early"), true))
		p, _ := s.roundTrip(text)
		p.wantFrame(bitFin|opPong, "early")
		(<-s.Streams).Sender.Close(transport.Abort)
	})
}
