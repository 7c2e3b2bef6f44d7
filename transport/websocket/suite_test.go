package websocket

import (
	"testing"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/transporttest"
)

func TestAllBackendsInteroperate(t *testing.T) {
	for _, server := range backends {
		for _, client := range backends {
			t.Run("server="+server.String()+"/client="+client.String(), func(t *testing.T) {
				p := transporttest.Pair{
					Server:            &Server{Backend: server},
					Client:            func(n transport.Network) transport.Client { return &Client{Network: n, Backend: client} },
					Framings:          []framing.Framer{framing.JSON{}, framing.CBORSeq{}},
					CannotSplitFrames: server == Nhooyr,
				}
				if server == Gorilla {
					p.Compressions = []string{permessageDeflate}
				}
				transporttest.Run(t, p)
			})
		}
	}
}
