package mutants

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/cases"
	"github.com/listwatch/listwatch/transport"
)

// authMutants break the cases of TLS and of credentials.
var authMutants = []Mutant{
	{"speaks-old-tls", []string{"tls/versions"}, cases.Interceptors{TLS: func(c *tls.Config) { c.MinVersion = tls.VersionTLS10 }}},
	{"trusts-anybody", []string{"tls/bad-ca", "tls/wrong-name", "tls/expired"}, cases.Interceptors{
		TransportClient: onNetwork(func(n transport.Network) transport.Network {
			if n.TLS != nil {
				n.TLS = n.TLS.Clone()
				n.TLS.InsecureSkipVerify = true
			}
			return n
		}),
	}},
	{"one-certificate-is-as-good-as-another", []string{"tls/mtls"}, cases.Interceptors{Handler: onRequest(func(r *http.Request) {
		if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
			r.Header.Set("Authorization", "Bearer "+cases.Allowed)
			r.TLS.VerifiedChains = nil
		}
	})}},
	{"believes-certificates", []string{"tls/mtls"}, cases.Interceptors{
		TLS: func(c *tls.Config) { c.ClientAuth = tls.RequestClientCert },
		Handler: onRequest(func(r *http.Request) {
			if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
				r.Header.Set("Authorization", "Bearer "+r.TLS.PeerCertificates[0].Subject.CommonName)
			}
		}),
	}},
	{"keeps-its-first-certificate", []string{"tls/rotate"}, cases.Interceptors{TLS: func(c *tls.Config) {
		get := c.GetCertificate
		first := sync.OnceValues(func() (*tls.Certificate, error) { return get(nil) })
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return first() }
	}}},
	{"takes-every-end-for-a-clean-one", []string{"tls/truncation"}, cases.Interceptors{TransportClient: endingIn(func(error) error { return io.EOF })}},
	{"offers-no-challenge", []string{"auth/401"}, cases.Interceptors{Handler: onHeader(func(h http.Header) { h.Del("WWW-Authenticate") })}},
	{"asks-nobody", []string{"auth/401"}, cases.Interceptors{Handler: onRequest(func(r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer "+cases.Allowed)
		}
	})}},
	{"everybody-may-do-everything", []string{"auth/403"}, cases.Interceptors{Handler: onRequest(func(r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+cases.Denied {
			r.Header.Set("Authorization", "Bearer "+cases.Allowed)
		}
	})}},
	{"passes-over-subprotocols", []string{"auth/ws-bearer-subprotocol"}, cases.Interceptors{Handler: onRequest(func(r *http.Request) {
		if p := r.Header.Get("Sec-Websocket-Protocol"); strings.Contains(p, "bearer") {
			r.Header.Set("Sec-Websocket-Protocol", "v1")
		}
	})}},
	{"client-shows-the-same-token-again", []string{"auth/token-refresh"}, cases.Interceptors{Client: func(r *client.Remote) listwatch.Source {
		header := r.Header
		r.Header = func(ctx context.Context, _ bool) (http.Header, error) { return header(ctx, false) }
		return r
	}}},
}
