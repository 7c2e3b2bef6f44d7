package h2

import (
	"net/http"
	"testing"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/transporttest"
)

var framings = []framing.Framer{
	framing.JSON{},
	framing.SSE{},
	framing.JSONSeq{},
	framing.CBORSeq{},
	framing.LengthPrefixed{},
}

func newClient(n transport.Network) transport.Client { return &Client{Network: n} }

func configure(srv *http.Server, o transport.Options) {
	Configure(srv, Config{WriteTimeout: o.WriteTimeout, PingInterval: o.PingInterval})
}

func TestTransport(t *testing.T) {
	transporttest.Run(t, transporttest.Pair{
		Server: Server{}, Client: newClient, Configure: configure, Framings: framings,
		Compressions: transport.Codings(),
	})
}
