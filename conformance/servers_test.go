package conformance_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// testTimeout limits every wait of a test. It only stops tests that hang, and is not a performance
// limit.
const testTimeout = 8 * time.Minute

// A serverKey identifies a server of the matrix.
type serverKey struct {
	config string
	tls    bool
}

// startServers serves source with every configuration, each on its own port.
func startServers(t *testing.T, source listwatch.Source) map[serverKey]*servertest.Server {
	servers := make(map[serverKey]*servertest.Server)
	for _, config := range serverConfigs {
		for _, tls := range []bool{false, true} {
			servers[serverKey{config.name, tls}] = startServer(t, source, config, tls, nil)
		}
	}
	return servers
}

// startServer serves source with one configuration. If protocols is nil, the port speaks HTTP/1.1
// and HTTP/2.
func startServer(
	t *testing.T, source listwatch.Source, config serverConfig, tls bool, protocols *http.Protocols,
) *servertest.Server {
	t.Helper()
	http2 := config.http2
	http2.WriteTimeout, http2.PingInterval = testTimeout, testTimeout
	return servertest.Start(t, source, servertest.Options{
		Sockets: true, TLS: tls,
		Configure: func(s *watchserver.Server) {
			s.Transports = []transport.Server{config.Server}
			s.Timing.Heartbeat, s.Limits.WriteTimeout = testTimeout, testTimeout
		},
		ConfigureHTTP: func(s *http.Server) {
			s.Protocols, s.ReadHeaderTimeout = protocols, testTimeout
		},
		HTTP2: http2,
	})
}
