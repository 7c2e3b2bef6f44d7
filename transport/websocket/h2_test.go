package websocket

import (
	"net/http"
	"testing"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/h2websocket"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/transporttest"
)

// newH2Client returns a client that opens WebSockets over HTTP/2.
func newH2Client(n transport.Network) transport.Client {
	return h2websocket.NewClient(n, func(n transport.Network) transport.Client { return &Client{Network: n} })
}

// permitH2 makes srv serve WebSockets over HTTP/2.
func permitH2(srv *http.Server, o transport.Options) {
	h2.Configure(srv, h2.Config{WriteTimeout: o.WriteTimeout, PingInterval: o.PingInterval, ExtendedConnect: true})
}

func TestServerAndClientOverHTTP2(t *testing.T) {
	transporttest.Run(t, transporttest.Pair{
		Server: &Server{}, Client: newH2Client, Configure: permitH2,
		Framings:     []framing.Framer{framing.JSON{}, framing.CBORSeq{}},
		Compressions: []string{permessageDeflate},
	})
}
