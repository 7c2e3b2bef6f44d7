package conformance_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/internal/h2websocket"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/chunked"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/transport/websocket/gorilla"
	"github.com/listwatch/listwatch/transport/websocket/nhooyr"
)

// A serverConfig is a server of the test matrix: a transport server and an HTTP/2 configuration.
type serverConfig struct {
	name string
	transport.Server
	http2 h2.Config
}

var serverConfigs = []serverConfig{
	{"chunked-takeover", chunked.Server{}, h2.Config{}},
	{"chunked-standard", chunked.Server{DisableHijack: true}, h2.Config{}},
	{"h2-loop", h2.Server{}, h2.Config{}},
	{"h2-nethttp", h2.Server{}, h2.Config{NetHTTP: true}},
	{"websocket-native", &websocket.Server{}, h2.Config{}},
	{"websocket-h2", &websocket.Server{}, h2.Config{ExtendedConnect: true}},
	{"websocket-gorilla", &gorilla.Server{}, h2.Config{}},
	{"websocket-nhooyr", &nhooyr.Server{}, h2.Config{}},
}

// A clientConfig is a transport client of the test matrix.
type clientConfig struct {
	name, transport string
	newClient       func(n transport.Network) transport.Client
}

var clientConfigs = []clientConfig{
	{"chunked", "chunked", func(n transport.Network) transport.Client { return &chunked.Client{Network: n} }},
	{"h2", "h2", func(n transport.Network) transport.Client {
		return &h2.Client{Network: n, PingInterval: testTimeout}
	}},
	{"websocket-native", "websocket", func(n transport.Network) transport.Client {
		return &websocket.Client{
			Network: n,
		}
	}},
	{"websocket-h2", "websocket", func(n transport.Network) transport.Client {
		return h2websocket.NewClient(n,
			func(n transport.Network) transport.Client { return &websocket.Client{Network: n} })
	}},
	{"websocket-gorilla", "websocket", func(n transport.Network) transport.Client {
		return &gorilla.Client{
			Network: n,
		}
	}},
	{"websocket-nhooyr", "websocket", func(n transport.Network) transport.Client { return &nhooyr.Client{Network: n} }},
}

// A cell of the test matrix is a combination of server, client, framing and compression.
type cell struct {
	server  serverConfig
	tls     bool
	client  clientConfig
	framing framing.Framer
	// compression is the compression that the client requests.
	compression compression
}

// cells returns all combinations, including combinations in which a watch cannot work. It omits
// only combinations of the client websocket-h2 with a server that does not announce WebSocket over
// HTTP/2.
func cells() []cell {
	var all []cell
	for _, s := range serverConfigs {
		for _, tls := range []bool{false, true} {
			for _, c := range clientConfigs {
				if c.name == "websocket-h2" && !s.http2.ExtendedConnect {
					continue
				}
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

// cellsWhere returns the cells for which include returns true.
func cellsWhere(include func(cell) bool) []cell {
	return slices.DeleteFunc(cells(), func(c cell) bool { return !include(c) })
}

// String returns the name of c in a form that go test -run accepts unchanged.
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

// isSupported reports whether a watch in c works and has the requested compression, if any.
func (c cell) isSupported() bool {
	return !c.isRefused() && (c.compression.name == "none" || c.isCompressed())
}

// isRefused reports whether the server must refuse the watch.
func (c cell) isRefused() bool { return !c.transportsMatch() || !c.canRequestFraming() }

// isUncompressed reports whether c works, but without the requested compression.
func (c cell) isUncompressed() bool { return !c.isRefused() && !c.isSupported() }

// canRequestFraming reports whether the client can request the framing. Over WebSocket, the
// framing must be a MessageFramer.
func (c cell) canRequestFraming() bool {
	_, messages := c.framing.(framing.MessageFramer)
	return messages || c.client.transport != "websocket"
}

func (c cell) transportsMatch() bool { return c.server.Name() == c.client.transport }

// isCBOR reports whether the framing is CBOR, which preserves the values of objects but not
// their bytes.
func (c cell) isCBOR() bool { return c.framing == framing.Framer(framing.CBORSeq{}) }
