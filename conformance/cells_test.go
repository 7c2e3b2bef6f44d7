package conformance_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
)

// A serverEnd is a way to serve.
type serverConfig struct {
	name string
	transport.Server
}

var serverConfigs = []serverConfig{
	{"chunked-takeover", chunked.Server{}},
	{"chunked-standard", chunked.Server{DisableTakeover: true}},
	{"h2", h2.Server{}},
	{"websocket-gorilla", &websocket.Server{Backend: websocket.Gorilla}},
	{"websocket-nhooyr", &websocket.Server{Backend: websocket.Nhooyr}},
}

// A clientEnd is a way to dial.
type clientConfig struct {
	name, transport string
	newClient       func(n transport.Network) transport.Client
}

var clientConfigs = []clientConfig{
	{"chunked", "chunked", func(n transport.Network) transport.Client { return &chunked.Client{Network: n} }},
	{"h2", "h2", func(n transport.Network) transport.Client {
		return &h2.Client{Network: n, PingInterval: testTimeout}
	}},
	{"websocket-gorilla", "websocket", func(n transport.Network) transport.Client {
		return &websocket.Client{Network: n, Backend: websocket.Gorilla}
	}},
	{"websocket-nhooyr", "websocket", func(n transport.Network) transport.Client {
		return &websocket.Client{Network: n, Backend: websocket.Nhooyr}
	}},
}

// A cell of the matrix is one way for events from a store to a client.
type cell struct {
	server  serverConfig
	tls     bool
	client  clientConfig
	framing framing.Framer
	// compression is what the client asks for.
	compression compression
}

// cells returns the whole matrix, what can't work too.
func cells() []cell {
	var all []cell
	for _, s := range serverConfigs {
		for _, tls := range []bool{false, true} {
			for _, c := range clientConfigs {
				for _, f := range framing.Default().Framers() {
					for _, z := range compressions {
						all = append(all, cell{s, tls, c, f, z})
					}
				}
			}
		}
	}
	return all
}

// cellsThat returns those of the matrix that belong.
func cellsWhere(belong func(cell) bool) []cell {
	return slices.DeleteFunc(cells(), func(c cell) bool { return !belong(c) })
}

// String names c so that go test -run takes the name as it is.
func (c cell) String() string {
	return fmt.Sprintf("server=%s,%s/client=%s/framing=%s/compression=%s",
		c.server.name, securityName(c.tls), c.client.name, framingName(c.framing), c.compression.name)
}

func securityName(tls bool) string {
	if tls {
		return "tls"
	}
	return "plain"
}

func framingName(f framing.Framer) string {
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", f), "framing."))
}

// legal reports whether c can work: all that is asked for can be had.
func (c cell) isSupported() bool {
	return !c.isRefused() && (c.compression.name == "none" || c.isCompressed())
}

// refused reports whether there can be no stream.
func (c cell) isRefused() bool { return !c.transportsMatch() || !c.canRequestFraming() }

// plain reports whether there can be a stream, but none that is compressed as the client asks.
func (c cell) isUncompressed() bool { return !c.isRefused() && !c.isSupported() }

// askable reports whether the client can ask for the framing: over WebSocket it needs a form for one message.
func (c cell) canRequestFraming() bool {
	_, messages := c.framing.(framing.MessageFramer)
	return messages || c.client.transport != "websocket"
}

func (c cell) transportsMatch() bool { return c.server.Name() == c.client.transport }

// isCBOR reports whether objects arrive as the same values rather than as the same bytes.
func (c cell) isCBOR() bool { return c.framing == framing.Framer(framing.CBORSeq{}) }
