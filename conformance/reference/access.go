package reference

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/listwatch/listwatch/conformance/certs"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

// admit sets api up to know its users.
func admit(a harness.Access, api *kubeapi.Handler) error {
	if !a.RequireUser {
		return nil
	}
	tokens, err := kubeapi.ReadTokens(strings.NewReader(harness.Allowed + "," + harness.Allowed + ",1\n" + harness.Denied + "," + harness.Denied + ",2\n"))
	if err != nil {
		return err
	}
	api.Authenticate = kubeapi.FirstOf(kubeapi.ClientCertificate, tokens.Authenticate)
	api.Authorize = func(_ context.Context, user kubeapi.User, _ kubeapi.Attributes) error {
		if user.Name != harness.Allowed {
			return errors.New("only one user may do anything")
		}
		return nil
	}
	return nil
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
