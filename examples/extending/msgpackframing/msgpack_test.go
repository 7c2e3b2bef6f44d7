package msgpackframing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/transporttest"
	"github.com/listwatch/listwatch/transport/websocket"
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
			Server:    h2.Server{},
			Client:    func(n transport.Network) transport.Client { return &h2.Client{Network: n} },
			Configure: func(s *http.Server, o transport.Options) { h2.Configure(s, o) },
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

// Decoded events survive encoding, and nothing makes the decoder panic or allocate above its
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
				t.Fatalf("got %s %s, %v after a round trip, want %s %s", again.Type, again.Object, err, e.Type, e.Object)
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
