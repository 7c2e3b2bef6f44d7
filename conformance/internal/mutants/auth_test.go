package mutants

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/transport"
)

// authMutants are servers and clients with one defect each, which the cases about TLS and
// credentials must detect.
var authMutants = []mutant{
	{
		Name: "accepts-old-tls", Breaks: []string{"tls/versions"},
		Defect: defect{TLS: func(c *tls.Config) { c.MinVersion = tls.VersionTLS10 }},
	},
	{
		Name: "client-skips-certificate-verification", Breaks: []string{"tls/bad-ca", "tls/wrong-name", "tls/expired"},
		Defect: defect{
			TransportClient: onClientNetwork(func(n transport.Network) transport.Network {
				if n.TLS != nil {
					n.TLS = n.TLS.Clone()
					n.TLS.InsecureSkipVerify = true
				}
				return n
			}),
		},
	},
	{
		Name: "maps-every-certificate-to-one-user", Breaks: []string{"tls/mtls"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
				r.Header.Set("Authorization", "Bearer "+harness.Allowed)
				r.TLS.VerifiedChains = nil
			}
		})},
	},
	{
		Name: "accepts-untrusted-certificates", Breaks: []string{"tls/mtls"},
		Defect: defect{
			TLS: func(c *tls.Config) { c.ClientAuth = tls.RequestClientCert },
			Handler: onRequest(func(r *http.Request) {
				if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
					r.Header.Set("Authorization", "Bearer "+r.TLS.PeerCertificates[0].Subject.CommonName)
				}
			}),
		},
	},
	{
		Name: "never-rotates-its-certificate", Breaks: []string{"tls/rotate"},
		Defect: defect{TLS: func(c *tls.Config) {
			get := c.GetCertificate
			first := sync.OnceValues(func() (*tls.Certificate, error) { return get(nil) })
			c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return first() }
		}},
	},
	{
		Name: "client-takes-truncation-for-a-clean-end", Breaks: []string{"tls/truncation"},
		Defect: defect{TransportClient: onReceiveError(func(error) error { return io.EOF })},
	},
	{
		Name: "omits-www-authenticate", Breaks: []string{"auth/401"},
		Defect: defect{Handler: onHeader(func(h http.Header) { h.Del("WWW-Authenticate") })},
	},
	{
		Name: "accepts-requests-without-credentials", Breaks: []string{"auth/401"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				r.Header.Set("Authorization", "Bearer "+harness.Allowed)
			}
		})},
	},
	{
		Name: "skips-authorization", Breaks: []string{"auth/403"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if r.Header.Get("Authorization") == "Bearer "+harness.Denied {
				r.Header.Set("Authorization", "Bearer "+harness.Allowed)
			}
		})},
	},
	{
		Name: "forbids-expired-credentials", Breaks: []string{"auth/expiry-mid-stream"},
		Defect: defect{
			Transport: onFrames(replace(`"code":401`, `"code":403`)),
		},
	},
	{
		Name: "ends-without-a-reason-when-credentials-expire", Breaks: []string{"auth/expiry-mid-stream"},
		Defect: defect{
			Transport: onSend(func(next transport.Sender, frames [][]byte) error {
				return next.Send(slices.DeleteFunc(frames, func(f []byte) bool {
					return bytes.Contains(f, []byte(`"code":401`))
				}))
			}),
		},
	},
	{
		Name: "ignores-token-subprotocols", Breaks: []string{"auth/ws-bearer-subprotocol"},
		Defect: defect{Handler: onRequest(func(r *http.Request) {
			if p := r.Header.Get("Sec-Websocket-Protocol"); strings.Contains(p, "bearer") {
				r.Header.Set("Sec-Websocket-Protocol", "v1")
			}
		})},
	},
	{
		Name: "client-never-refreshes-its-token", Breaks: []string{"auth/token-refresh"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source {
			header := r.Header
			r.Header = func(ctx context.Context, _ bool) (http.Header, error) { return header(ctx, false) }
			return r
		}},
	},
	{
		Name: "client-refreshes-its-token-once-in-its-life", Breaks: []string{"auth/token-expiries"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source {
			header, refreshed := r.Header, false
			r.Header = func(ctx context.Context, refresh bool) (http.Header, error) {
				if refresh && refreshed {
					return nil, &listwatch.Error{
						Code: listwatch.Unauthorized, Message: "the token was refreshed before",
					}
				}
				refreshed = refreshed || refresh
				return header(ctx, refresh)
			}
			return r
		}},
	},
}
