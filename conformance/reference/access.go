package reference

import (
	"crypto/tls"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/certs"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

// authorize returns an error of code Unauthorized if the sender of r is unknown, and of code Forbidden if
// it is not [harness.Allowed]. It returns nil if a requires no user.
func authorize(a harness.Access, r *http.Request) error {
	if !a.RequireUser {
		return nil
	}
	user, err := userOf(r)
	if err == nil && user != harness.Allowed {
		err = &listwatch.Error{Code: listwatch.Forbidden, Message: "the user " + user + " may not use this server"}
	}
	return err
}

// userOf returns the common name of the client's certificate, or else the user of its bearer token.
func userOf(r *http.Request) (string, error) {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return r.TLS.VerifiedChains[0][0].Subject.CommonName, nil
	}
	// Schemes are case-insensitive (rfc9110#section-11.1).
	scheme, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		var err error
		if token, _, err = websocket.BearerToken(r); err != nil {
			return "", err
		}
	}
	if token != harness.Allowed && token != harness.Denied {
		return "", &listwatch.Error{Code: listwatch.Unauthorized, Message: "the request has no valid credentials"}
	}
	return token, nil
}

// origins are the patterns of those that are allowed.
func origins(a harness.Access) []string {
	if a.AllowedOrigin == "" {
		return nil
	}
	return []string{a.AllowedOrigin}
}

// serverOf returns the server's half of a transport with what a allows.
func serverOf(a harness.Access, s transport.Server) transport.Server {
	if ws, ok := s.(*websocket.Server); ok {
		return &websocket.Server{Backend: ws.Backend, AllowOrigins: origins(a)}
	}
	return s
}

// open lets pages in before next.
func open(a harness.Access, next http.Handler) http.Handler {
	if a.AllowedOrigin == "" {
		return next
	}
	return watchserver.CORS(next, origins(a))
}

// A certificateHolder has the certificate that a server shows. It is safe for concurrent use.
type certificateHolder struct {
	shown atomic.Pointer[tls.Certificate]
}

// renew puts a new one there.
func (s *certificateHolder) renew() { s.shown.Store(new(certs.Trusted().Issue(certs.ForServer))) }

// serve makes c show what is on the shelf, and ask for what a says.
func (s *certificateHolder) serve(c *tls.Config, a harness.Access) {
	s.renew()
	c.Certificates = nil // else they would be shown to clients that name no host
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.shown.Load(), nil }
	if a.ClientCertificates {
		// Who shows none may have a token.
		c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, certs.Trusted().Pool
	}
}
