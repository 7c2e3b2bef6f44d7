package listen

import (
	"log/slog"
	"net"
	"net/http"
)

// An Endpoint is an address that the server listens on.
type Endpoint struct {
	url      string // for a client on this machine
	listener net.Listener
	server   *http.Server
	access   endpointAccess
	early    chan error // receives the result of serve if ListenEarly has opened the endpoint
}

func newEndpoint(l net.Listener, p endpointPlan, log *slog.Logger) *Endpoint {
	e := &Endpoint{listener: l, access: p.access, server: &http.Server{
		Handler: withGuard(p.handler), TLSConfig: p.tls, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
	scheme := "http"
	if p.tls != nil {
		scheme = "https"
	}
	e.url = scheme + "://" + localAddress(l.Addr())
	return e
}

func (e *Endpoint) serve() error {
	if e.server.TLSConfig != nil {
		return e.server.ServeTLS(e.listener, "", "")
	}
	return e.server.Serve(e.listener)
}

// wait serves e, unless ListenEarly has begun to, and returns the error of serve.
func (e *Endpoint) wait() error {
	if e.early != nil {
		return <-e.early
	}
	return e.serve()
}
