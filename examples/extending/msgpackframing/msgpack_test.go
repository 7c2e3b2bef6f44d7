package msgpackframing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/transporttest"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

func TestFramer(t *testing.T) { conformance.TestFramer(t, Framer{}) }

func TestEveryTransport(t *testing.T) {
	framings := []framing.Framer{framing.JSON{}, Framer{}}
	for _, p := range []transporttest.Pair{
		{
			Server: chunked.Server{},
			Client: func(n transport.Network) transport.Client { return &chunked.Client{Network: n} },
		},
		{
			Server: h2.Server{},
			Client: func(n transport.Network) transport.Client { return &h2.Client{Network: n} },
			Configure: func(s *http.Server, o transport.Options) {
				h2.Configure(s, h2.Config{WriteTimeout: o.WriteTimeout, PingInterval: o.PingInterval})
			},
		},
		{
			Server:            &websocket.Server{},
			Client:            func(n transport.Network) transport.Client { return &websocket.Client{Network: n} },
			CannotSplitFrames: true,
		},
	} {
		t.Run(p.Server.Name(), func(t *testing.T) {
			p.Framings = framings
			conformance.TestTransport(t, p)
		})
	}
}

// A page cannot set Accept for a WebSocket; it requests the framing by its subprotocol.
func TestSubprotocolSelectsTheFraming(t *testing.T) {
	things := memory.New[thing]()
	if _, err := things.Create(t.Context(), thing{listwatch.Metadata{Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	offer, err := framing.NewRegistry(append(framing.Default().Framers(), Framer{})...)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&watchserver.Server{Source: things, Framings: offer})
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key":      "dGhlIHNhbXBsZSBub25jZQ==",
		"Sec-WebSocket-Protocol": "chat, " + Framer{}.Subprotocol(),
	} {
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Sec-WebSocket-Protocol"); got != (Framer{}).Subprotocol() {
		t.Fatalf("got %s with subprotocol %q, want %q", resp.Status, got, Framer{}.Subprotocol())
	}
	// Read the frame's header: the first byte marks a binary message, and the second byte a length
	// of 16 bits.
	var head [4]byte
	if _, err := io.ReadFull(resp.Body, head[:]); err != nil || head[0] != 0x82 || head[1] != 126 {
		t.Fatalf("got a frame that begins with %x, %v, want a binary message of medium length", head, err)
	}
	message := make([]byte, int(head[2])<<8|int(head[3]))
	if _, err := io.ReadFull(resp.Body, message); err != nil {
		t.Fatal(err)
	}
	if e, err := (Framer{}).DecodeMessage(message); err != nil || e.Type != "ADDED" {
		t.Errorf("got %q event, %v, want ADDED", e.Type, err)
	}
}

type thing struct {
	listwatch.Metadata `json:"metadata"`
}

// Decoded events survive encoding, and no input makes the decoder panic or allocate above its
// limit.
func FuzzDecode(f *testing.F) {
	for _, object := range []string{`{}`, `{"metadata":{"name":"a","resourceVersion":"7"},"n":1e400}`} {
		data, err := Framer{}.AppendEvent(nil, framing.WatchEvent{Type: "ADDED", Object: []byte(object)})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(slices.Concat(data, data))
		f.Add(data[:len(data)-1])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := Framer{}.NewDecoder(bytes.NewReader(data), 1<<10)
		for {
			e, err := d.Decode()
			if err != nil {
				if err != io.EOF && !errors.Is(err, listwatch.Corrupt) {
					t.Fatalf("got %v, want io.EOF or code Corrupt", err)
				}
				return
			}
			message, err := Framer{}.AppendMessage(nil, e)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Framer{}.DecodeMessage(message)
			if err != nil || again.Type != e.Type || !bytes.Equal(again.Object, e.Object) {
				t.Fatalf("got %s %s, %v after a round trip, want %s %s", again.Type, again.Object, err, e.Type,
					e.Object)
			}
		}
	})
}

func ExampleFramer() {
	e := framing.WatchEvent{Type: "DELETED", Object: []byte(`{"metadata":{"name":"a","resourceVersion":"7"}}`)}
	message, err := Framer{}.AppendMessage(nil, e)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d bytes of JSON as %d bytes: %q\n", len(e.Object), len(message), message[:12])
	decoded, err := Framer{}.DecodeMessage(message)
	fmt.Println(decoded.Type, string(decoded.Object), err)
	// Output:
	// 47 bytes of JSON as 58 bytes: "\x92\xa7DELETED\xc4/{"
	// DELETED {"metadata":{"name":"a","resourceVersion":"7"}} <nil>
}
