package main

//lint:file-ignore SA1019 many programs still use this package, so the example must work with it

import (
	"net/http"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/h2c"
)

// withH2C adds HTTP/2 in clear text to next, as programs did before net/http supported it.
func withH2C(next http.Handler) http.Handler { return h2c.NewHandler(next, &http2.Server{}) }
