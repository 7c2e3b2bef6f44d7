// Package servers implements the same server with each rival: a watcher first receives the current
// objects, then every change. Each server is written as the documentation of its library
// recommends.
package servers

import (
	"net"
	"net/http"
	"time"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/event"
)

// A Server is a running server.
type Server interface {
	// Publish sends a change to all watchers. It has one caller at a time.
	Publish(o event.Object)
}

// Start serves watchers of the given objects on a listener, in the background. The process ends
// when the server is no longer needed, so there is no way to stop it.
type Start func(l net.Listener, state []event.Object) (Server, error)

// serveHTTP serves h on l, with the time limits that net/http's documentation recommends for
// requests.
func serveHTTP(l net.Listener, h http.Handler) {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(l)
}
