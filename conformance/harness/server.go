package harness

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"github.com/listwatch/listwatch/conformance/internal/certs"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/transport/transporttest"
)

// StartServer starts an http.Server with the handler h and the options in s. If the server
// uses TLS, secure adjusts its TLS configuration. change, if not nil, is applied to the http.Server
// before it starts.
func StartServer(t T, s Setup, h http.Handler, secure func(*tls.Config), change func(*http.Server)) *Instance {
	t.Helper()
	var shutdown func(context.Context) error
	configure := func(srv *http.Server) {
		h2.Configure(srv, s.HTTP2)
		shutdown = srv.Shutdown
		srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			if s.SmallBuffers {
				// Ignore the error, because the kernel may choose another size anyway.
				_ = c.(*net.TCPConn).SetWriteBuffer(socketBufferBytes)
			}
			return context.WithValue(ctx, ConnKey{}, c)
		}
		if change != nil {
			change(srv)
		}
	}
	at := transporttest.StartServer(t, transporttest.ServerConfig{
		Handler:   func(http.Handler) http.Handler { return h },
		Configure: configure, ServerTLS: secure, TLS: s.TLS, Sockets: !s.FakeTime,
	})
	u := *at.URL
	u.Path, u.RawQuery = "/things", ""
	if s.TLS {
		at.Network.TLS = &tls.Config{RootCAs: certs.Trusted().Pool}
	}
	if s.SmallBuffers {
		at.Network.Dial = dialSmallBuffers
	}
	return &Instance{URL: &u, Network: at.Network, Shutdown: shutdown}
}

// ConnKey is the key of a request's net.Conn in the request context.
type ConnKey struct{}

// socketBufferBytes is the approximate size of a socket buffer if Setup.SmallBuffers is
// set.
const socketBufferBytes = 64 << 10

func dialSmallBuffers(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil {
		err = c.(*net.TCPConn).SetReadBuffer(socketBufferBytes)
	}
	return c, err
}
