//go:build !race

package apiserver

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// serve serves the handler of g at the listener of g, with an http.Server that configure sets up.
// Call serve after g.PrepareRun and before RunWithContext, which still decides when the server
// shuts down. After RunWithContext has returned, call stop, which waits until all requests have
// ended.
func serve(g *server.GenericAPIServer, configure func(*http.Server)) (stop func(), err error) {
	secure := g.SecureServingInfo
	listener, idle := secure.Listener, &idleListener{addr: secure.Listener.Addr(), closed: make(chan struct{})}
	secure.Listener = idle
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	certificates := dynamiccertificates.NewDynamicServingCertificateController(config, secure.ClientCA,
		secure.Cert, secure.SNICerts, nil)
	if err := certificates.RunOnce(); err != nil {
		return nil, err
	}
	go certificates.Run(1, idle.closed)
	config.GetConfigForClient = certificates.GetConfigForClient
	hs := &http.Server{Handler: g.Handler, TLSConfig: config}
	configure(hs)
	stopped, _, err := server.RunServer(hs, listener, g.ShutdownTimeout, idle.closed)
	return func() {
		idle.Close() // in case RunWithContext failed before it closed its listener
		<-stopped
	}, err
}

// An idleListener accepts no connections. serve gives it to the API server for the http.Server that
// the API server starts itself. The API server closes the idleListener when it starts to refuse
// connections, a moment that no exported field of the API server reports.
type idleListener struct {
	addr   net.Addr
	once   sync.Once
	closed chan struct{}
}

// Accept implements net.Listener.
func (i *idleListener) Accept() (net.Conn, error) {
	<-i.closed
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (i *idleListener) Close() error {
	i.once.Do(func() { close(i.closed) })
	return nil
}

// Addr implements net.Listener.
func (i *idleListener) Addr() net.Addr { return i.addr }
