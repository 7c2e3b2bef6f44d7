package chunked

import (
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

func TestTransport(t *testing.T) {
	for _, path := range []struct {
		name   string
		server Server
	}{
		{"lean", Server{}},
		{"standard", Server{DisableHijack: true}},
	} {
		t.Run(path.name, func(t *testing.T) {
			transporttest.Run(t,
				transporttest.Pair{
					Server: path.server, Client: newClient, Framings: framings,
					Compressions: transport.Codings(),
				})
		})
	}
}
