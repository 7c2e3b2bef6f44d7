package clusterrelay

import (
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
	"github.com/listwatch/listwatch/watchserver"
	authenticationv1 "k8s.io/api/authentication/v1"
)

// A sender proves who sends a request: by a certificate or, if certified is nil, by a token. As at
// an API server, the certificate counts if there are both.
type sender struct {
	certified *certified
	token     string
}

// senderOf returns the sender of r. If r has a client certificate, identify must accept it. A nil
// identify ignores certificates.
func senderOf(r *http.Request, identify watchserver.Authenticator) (s sender, err error) {
	if identify == nil || r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		if s.token, err = watchserver.BearerToken(r); err != nil {
			s.token = "" // the API server refuses a malformed header
		}
		return s, nil
	}
	verified, err := identify(r)
	if err == nil {
		s.certified, err = newCertified(verified, r.TLS.VerifiedChains[0][0].Raw)
	}
	if err != nil {
		return s, certificateRefused(err)
	}
	return s, nil
}

// isKnown reports whether s has credentials.
func (s sender) isKnown() bool { return s.certified != nil || s.token != "" }

// A user is the sender of a request, as the API server knows them.
type user struct {
	authenticationv1.UserInfo
	key string // all of it as JSON; empty if the user is unknown
}

func newUser(info authenticationv1.UserInfo) (user, error) {
	key, err := json.Marshal(info)
	return user{info, string(key)}, err
}

func (u user) forServer() watchserver.User {
	return watchserver.User{Name: u.Username, UID: u.UID, Groups: u.Groups}
}

// A certified is the user of a client certificate.
type certified struct {
	user
	recheck func() error
}

// newCertified returns the user that an Authenticator has identified by a certificate with the
// given DER form.
func newCertified(verified watchserver.User, der []byte) (*certified, error) {
	u, err := certifiedUser(verified, der)
	return &certified{user: u, recheck: func() error {
		if verified.Recheck == nil {
			return nil
		}
		_, err := verified.Recheck()
		return err
	}}, err
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

// certifiedUser returns the user that an API server derives from u and the certificate in DER form.
func certifiedUser(u watchserver.User, der []byte) (user, error) {
	sum := sha256.Sum256(der)
	known := authenticationv1.UserInfo{
		Username: u.Name, Groups: append(slices.Clone(u.Groups), authenticatedGroup),
		Extra: map[string]authenticationv1.ExtraValue{credentialID: {"X509SHA256=" + hex.EncodeToString(sum[:])}},
	}
	for _, name := range append([]string{u.Name}, known.Groups...) {
		// A header cannot carry such a name without changing it.
		if name == "" || strings.TrimSpace(name) != name || strings.ContainsFunc(name, unicode.IsControl) {
			return user{}, &listwatch.Error{
				Code:    listwatch.Unauthorized,
				Message: fmt.Sprintf("the name %q: must be without spaces around it and without control characters", name),
			}
		}
	}
	return newUser(known)
}

// assert sets the fields by which an authenticating proxy names u (Kubernetes, "Authenticating",
// Authenticating proxy). It first removes every field from the client that an API server could take
// for the name of a user. h has no hop-by-hop fields any more, so the client cannot have the new
// fields removed.
func (u user) assert(h http.Header) {
	for name := range h {
		if namesUser(strings.ToLower(name)) {
			delete(h, name)
		}
	}
	h.Set("X-Remote-User", u.Username)
	for _, group := range u.Groups {
		h.Add("X-Remote-Group", group)
	}
	for key, values := range u.Extra {
		h["X-Remote-Extra-"+url.PathEscape(key)] = values
	}
}

// harmless are fields that do not name users, although their names begin with "x-".
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
			"or give the relay the certificate of a front proxy (--front-proxy-cert)",
	}
}
