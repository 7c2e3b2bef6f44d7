package msgpackframing

import (
	"fmt"
	"net/http"
	"testing"

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
