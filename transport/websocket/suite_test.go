package websocket

import (
	"testing"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/transporttest"
)

func TestServerAndClient(t *testing.T) {
	transporttest.Run(t, transporttest.Pair{
		Server:       &Server{},
		Client:       func(n transport.Network) transport.Client { return &Client{Network: n} },
		Framings:     []framing.Framer{framing.JSON{}, framing.CBORSeq{}},
		Compressions: []string{permessageDeflate},
	})
}
