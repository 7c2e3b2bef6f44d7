package clusterrelay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// Certificates configure how clients with certificates are served. If zero, their certificates are
// ignored, and clients need tokens.
type Certificates struct {
	// Verify identifies the client by a certificate that the TLS server has verified. Its CA must
	// be the CA of the API server's clients, because the API server is asked only for the rights of
	// the user. If nil, certificates are ignored.
	Verify watchserver.Authenticator
	// FrontProxy connects to the API server with the certificate of an authenticating proxy, which
	// may act as any user. If nil, requests of clients with certificates cannot pass through.
	FrontProxy *transport.Network
}

// A user is the sender of a request, as the API server knows them.
type user struct {
	Name   string              `json:"username"`
	UID    string              `json:"uid"`
	Groups []string            `json:"groups"`
	Extra  map[string][]string `json:"extra"`

	key string // all of it as JSON; empty if the user is unknown
}

func (u user) forServer() watchserver.User {
	return watchserver.User{Name: u.Name, UID: u.UID, Groups: u.Groups}
}

// certifiedKey is the key of the context of a request with a client certificate. Its value is a
// *certified.
type certifiedKey struct{}

// A certified is the user of a client certificate.
type certified struct {
	user
	recheck func() error
}

// certifiedIn returns the user of the client certificate of a request with the given context, or
// nil if there is none.
func certifiedIn(ctx context.Context) *certified {
	c, _ := ctx.Value(certifiedKey{}).(*certified)
	return c
}

// withCertificate returns r, with the user of its client certificate in its context if it has one.
func (c *Certificates) withCertificate(r *http.Request) (*http.Request, error) {
	if c.Verify == nil || r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return r, nil
	}
	verified, err := c.Verify(r)
	if err != nil {
		return nil, certificateRefused(err)
	}
	u, err := certifiedUser(verified, r.TLS.VerifiedChains[0][0].Raw)
	if err != nil {
		return nil, certificateRefused(err)
	}
	known := &certified{user: u, recheck: func() error {
		if verified.Recheck == nil {
			return nil
		}
		_, err := verified.Recheck()
		return err
	}}
	return r.WithContext(context.WithValue(r.Context(), certifiedKey{}, known)), nil
}

func certificateRefused(err error) error {
	e := listwatch.AsError(err)
	message := "the client certificate is not accepted"
	if e.Message != "" {
		message += ": " + e.Message
	}
	return &listwatch.Error{Code: listwatch.Unauthorized, Message: message, Err: e.Err}
}

// The group and the attribute that an API server adds to the users of certificates (Kubernetes,
// "Authenticating", X.509 client certificates).
const (
	authenticatedGroup = "system:authenticated"
	credentialID       = "authentication.kubernetes.io/credential-id"
)

// certifiedUser returns u, whose certificate has the given DER form, as an API server knows it.
func certifiedUser(u watchserver.User, der []byte) (user, error) {
	sum := sha256.Sum256(der)
	known := user{
		Name: u.Name, Groups: append(slices.Clone(u.Groups), authenticatedGroup),
		Extra: map[string][]string{credentialID: {"X509SHA256=" + hex.EncodeToString(sum[:])}},
	}
	for _, name := range append([]string{u.Name}, known.Groups...) {
		// A header cannot carry these, or carries another name.
		if name == "" || strings.TrimSpace(name) != name || strings.ContainsFunc(name, unicode.IsControl) {
			return user{}, &listwatch.Error{
				Code:    listwatch.Unauthorized,
				Message: fmt.Sprintf("the name %q: must be without spaces around it and without control characters", name),
			}
		}
	}
	key, err := json.Marshal(known)
	known.key = string(key)
	return known, err
}

// assert makes h the header of a request of u that an authenticating proxy sends (Kubernetes,
// "Authenticating", Authenticating proxy). Nothing that the client has sent remains that an API
// server could take for the name of a user. h has no hop-by-hop fields any more, so the client
// cannot have them removed either.
func (u user) assert(h http.Header) {
	for name := range h {
		if namesUser(strings.ToLower(name)) {
			delete(h, name)
		}
	}
	h.Set("X-Remote-User", u.Name)
	for _, group := range u.Groups {
		h.Add("X-Remote-Group", group)
	}
	for key, values := range u.Extra {
		h["X-Remote-Extra-"+url.PathEscape(key)] = values
	}
}

// harmless are the fields that namesUser would take for names of users.
var harmless = []string{
	"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", // set by the relay
	"x-stream-protocol-version", // of exec and port-forward
}

// namesUser reports whether the field with the given name, in lower case, may name a user for an
// API server with unusual flags (--requestheader-username-headers).
func namesUser(name string) bool {
	return name == "authorization" || strings.HasPrefix(name, "remote-") ||
		strings.HasPrefix(name, "x-") && !slices.Contains(harmless, name)
}

// errCannotPassOn is the error for a request with a client certificate that no cache can answer, if
// there is no front proxy.
func errCannotPassOn() error {
	return &listwatch.Error{
		Code: listwatch.Unauthorized,
		Message: "the relay cannot pass on a client certificate: send this request to the API server, use a token, " +
			"or start the relay with --front-proxy-cert",
	}
}
