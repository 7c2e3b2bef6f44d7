package cases

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/watchserver"
)

// Access is what a server asks of its clients. The zero Access lets everybody in who is no foreign page.
type Access struct {
	// Users: whoever shows no credentials is answered 401. There are two users, [Allowed] and [Denied].
	RequireUser bool
	// Certificates: clients may show certificates, those of [Site.Certify], as their credentials. The server is a secure one.
	ClientCertificates bool
	// Origin is that of foreign pages that may use the server; empty: none may.
	AllowedOrigin string
}

// The users that a server knows where Access.Users is set. A user's name is the user's bearer token, too.
const (
	Allowed = "allowed" // may do everything
	Denied  = "denied"  // may do nothing
)

// admit sets api up to know its users.
func (a Access) admit(api *kubeapi.Handler) error {
	if !a.RequireUser {
		return nil
	}
	tokens, err := kubeapi.ReadTokens(strings.NewReader(Allowed + "," + Allowed + ",1\n" + Denied + "," + Denied + ",2\n"))
	if err != nil {
		return err
	}
	api.Authenticate = kubeapi.FirstOf(kubeapi.ClientCertificate, tokens.Authenticate)
	api.Authorize = func(_ context.Context, user kubeapi.User, _ kubeapi.Attributes) error {
		if user.Name != Allowed {
			return errors.New("only one user may do anything")
		}
		return nil
	}
	return nil
}

// origins are the patterns of those that are allowed.
func (a Access) origins() []string {
	if a.AllowedOrigin == "" {
		return nil
	}
	return []string{a.AllowedOrigin}
}

// serverOf returns the server's half of a transport with what a allows.
func (a Access) serverOf(s transport.Server) transport.Server {
	if ws, ok := s.(*websocket.Server); ok {
		return &websocket.Server{Backend: ws.Backend, AllowOrigins: a.origins()}
	}
	return s
}

// open lets pages in before next.
func (a Access) open(next http.Handler) http.Handler {
	if a.AllowedOrigin == "" {
		return next
	}
	return watchserver.CORS(next, a.origins())
}

// A shelf has the certificate that a server shows. It is safe for concurrent use.
type shelf struct {
	shown atomic.Pointer[tls.Certificate]
}

// renew puts a new one there.
func (s *shelf) renew() { s.shown.Store(new(ours().issue(serves))) }

// serve makes c show what is on the shelf, and ask for what a says.
func (s *shelf) serve(c *tls.Config, a Access) {
	s.renew()
	c.Certificates = nil // else they would be shown to clients that name no host
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.shown.Load(), nil }
	if a.ClientCertificates {
		// Who shows none may have a token.
		c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, ours().pool
	}
}
