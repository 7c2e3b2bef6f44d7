package reference

import (
	"crypto/tls"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/internal/certs"
	"github.com/listwatch/listwatch/watchserver"
)

// authorize returns the user of r. The error has code Unauthorized if r has no known user, and code
// Forbidden if the user is not [harness.Allowed]. If a.RequireUser is false, authorize returns the
// zero User.
func authorize(a harness.Access, r *http.Request) (user watchserver.User, err error) {
	if !a.RequireUser {
		return user, nil
	}
	if user.Name, err = userOf(r); err != nil {
		return user, err
	}
	if user.Name != harness.Allowed {
		return user, &listwatch.Error{
			Code: listwatch.Forbidden, Message: "the user " + user.Name + " may not use this server",
		}
	}
	if a.Lifetime > 0 {
		user.Expires = time.Now().Add(a.Lifetime)
	}
	return user, nil
}

// userOf returns the common name of the client's certificate, or else the user that the
// bearer token names.
func userOf(r *http.Request) (string, error) {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return r.TLS.VerifiedChains[0][0].Subject.CommonName, nil
	}
	token, err := watchserver.BearerToken(r)
	if err != nil {
		return "", err
	}
	if token != harness.Allowed && token != harness.Denied {
		return "", &listwatch.Error{Code: listwatch.Unauthorized, Message: "the request has no valid credentials"}
	}
	return token, nil
}

// allowedOrigins returns the patterns of the allowed origins.
func allowedOrigins(a harness.Access) []string {
	if a.AllowedOrigin == "" {
		return nil
	}
	return []string{a.AllowedOrigin}
}

// withCORS wraps a handler so that pages of the allowed origin may use it.
func withCORS(a harness.Access, next http.Handler) http.Handler {
	if a.AllowedOrigin == "" {
		return next
	}
	return watchserver.CORS(next, allowedOrigins(a))
}

// A certificateHolder holds the current certificate of a server. It is safe for concurrent use.
type certificateHolder struct {
	current atomic.Pointer[tls.Certificate]
}

// renew replaces the certificate with a new one.
func (c *certificateHolder) renew() { c.current.Store(new(certs.Trusted().Issue(certs.ForServer))) }

// configure makes c present the current certificate and, if a.ClientCertificates is true,
// request a client certificate.
func (c *certificateHolder) configure(config *tls.Config, a harness.Access) {
	c.renew()
	// If this list were not empty, clients that send no server name would get its certificates.
	config.Certificates = nil
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current.Load(), nil }
	if a.ClientCertificates {
		// A client certificate is optional, because a client may send a token instead.
		config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, certs.Trusted().Pool
	}
}
