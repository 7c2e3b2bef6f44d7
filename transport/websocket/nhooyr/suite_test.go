package nhooyr

import (
	"net/http"
	"testing"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/h2websocket"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/transporttest"
	"github.com/listwatch/listwatch/transport/websocket"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var framings = []framing.Framer{framing.JSON{}, framing.CBORSeq{}}

func newClient(n transport.Network) transport.Client { return &Client{Network: n} }

func TestServerAndClient(t *testing.T) {
	transporttest.Run(t,
		transporttest.Pair{Server: &Server{}, Client: newClient, Framings: framings, CannotSplitFrames: true})
}

func TestServerWithNativeClient(t *testing.T) {
	transporttest.Run(t, transporttest.Pair{
		Server:   &Server{},
		Client:   func(n transport.Network) transport.Client { return &websocket.Client{Network: n} },
		Framings: framings, CannotSplitFrames: true,
	})
}

func TestNativeServerWithClient(t *testing.T) {
	transporttest.Run(t, transporttest.Pair{
		Server: &websocket.Server{}, Client: newClient, Framings: framings,
		Compressions: []string{"permessage-deflate"},
	})
}

func TestServerOverHTTP2(t *testing.T) {
	transporttest.Run(t, transporttest.Pair{
		Server: &Server{},
		Client: func(n transport.Network) transport.Client { return h2websocket.NewClient(n, newClient) },
		Configure: func(srv *http.Server, o transport.Options) {
			h2.Configure(srv, h2.Config{
				WriteTimeout: o.WriteTimeout, PingInterval: o.PingInterval,
				ExtendedConnect: true,
			})
		},
		Framings: framings, CannotSplitFrames: true,
	})
}
