package main

//lint:file-ignore SA1019 many programs still use this package, so the example must work with it

import (
	"net/http"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/h2c"
)

// withH2C is how programs served HTTP/2 in clear text before net/http could.
func withH2C(next http.Handler) http.Handler { return h2c.NewHandler(next, &http2.Server{}) }
