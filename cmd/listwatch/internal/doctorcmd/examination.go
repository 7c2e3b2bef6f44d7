package doctorcmd

import (
	"crypto/tls"
	"net/http"
	"net/url"
)

// An examination is one run of doctor.
type examination struct {
	*options
	collection, echo *url.URL
	tls              *tls.Config
	report           report
	// http1 sends requests over HTTP/1.1, and negotiated over the version that TLS negotiates.
	http1, negotiated *http.Transport
	proxy             string // the name of the proxy, from its responses; may be empty
}
