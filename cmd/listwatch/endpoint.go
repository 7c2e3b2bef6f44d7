package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
)

// An endpoint is one address that serve listens on.
type endpoint struct {
	url      string // how a client on this machine reaches it
	listener net.Listener
	server   *http.Server
	about    about
}

// about is what clients need to know of an endpoint.
type about struct {
	debug        bool
	asks         bool // for credentials
	tokens       bool // a token will do
	certificates bool // a client certificate will do
	selfSigned   bool
	caFile       string // the certificate of selfSigned, where it was written to
}

func (e *endpoint) serve() error {
	if e.server.TLSConfig != nil {
		return e.server.ServeTLS(e.listener, "", "")
	}
	return e.server.Serve(e.listener)
}

// listen opens all endpoints of f, or none.
func (o *listenOptions) listen(a *access, f *front) (err error) {
	defer func() {
		if err != nil {
			for _, e := range f.ends {
				e.listener.Close()
			}
			f.ends = nil
		}
	}()
	if o.addr == "" && o.tlsAddr == "" {
		return usagef("nowhere to listen: give --addr or --tls-addr")
	}
	if o.tlsAddr == "" && (o.tls != tlsOptions{}) {
		return usagef("--tls-cert, --tls-key, --tls-self-signed and --tls-ca-out need --tls-addr")
	}
	api := watchserver.CORS(f.handler, o.origins)
	add := func(flag, addr string, handler http.Handler, config *tls.Config, about about) error {
		if err := a.check(flag, addr, about.asks); err != nil {
			return err
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return listenError(flag, addr, err)
		}
		if tcp, ok := l.Addr().(*net.TCPAddr); ok && tcp.IP.IsLoopback() && !about.asks && !o.insecure {
			handler = localHosts(handler)
		}
		f.ends = append(f.ends, newEndpoint(l, handler, config, about, f.log))
		return nil
	}
	if o.addr != "" {
		if err := add("--addr", o.addr, api, nil, about{asks: a.asks(false), tokens: a.tokens != nil}); err != nil {
			return err
		}
	}
	if o.tlsAddr != "" {
		config, err := o.tls.config(a.clientCAs)
		if err != nil {
			return err
		}
		about := about{
			asks: a.asks(true), tokens: a.tokens != nil, certificates: a.clientCAs != nil,
			selfSigned: o.tls.selfSigned, caFile: o.tls.caOut,
		}
		if err := add("--tls-addr", o.tlsAddr, api, config, about); err != nil {
			return err
		}
	}
	if o.debugAddr != "" {
		return add("--debug-addr", o.debugAddr, f.debug, nil, about{debug: true})
	}
	return nil
}

func newEndpoint(l net.Listener, handler http.Handler, config *tls.Config, about about, log *slog.Logger) *endpoint {
	e := &endpoint{listener: l, about: about, server: &http.Server{
		Handler: handler, TLSConfig: config, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
	h2.Configure(e.server, transport.Options{})
	scheme := "http"
	if config != nil {
		scheme = "https"
	}
	e.url = scheme + "://" + reachable(l.Addr())
	return e
}

// reachable returns a, or loopback where a is all addresses.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
}

// listenError names the address and says what to do.
func listenError(flag, addr string, err error) error {
	advice := "give another address"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		advice = "something listens there already: stop it, or give another address, such as 127.0.0.1:0 for any free port"
	case errors.Is(err, syscall.EACCES):
		advice = "ports below 1024 are for root: give a higher one"
	}
	cause := err
	if op, ok := errors.AsType[*net.OpError](err); ok {
		cause = op.Err
	}
	return fmt.Errorf("%s %s: %w: %s", flag, addr, cause, advice)
}
