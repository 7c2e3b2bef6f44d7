// Package oidc identifies users by the JSON Web Tokens of an OpenID Connect provider, such as
// Keycloak, Dex, Okta, Google or Microsoft Entra ID:
//
//	authenticator, err := oidc.New(ctx, oidc.Options{
//		Issuer: "https://id.example.com", Audience: "flags",
//	})
//	server := &watchserver.Server{Access: watchserver.Access{Authenticator: authenticator}}
//
// A client sends its ID token in the header "Authorization: Bearer TOKEN", or in a subprotocol if
// it is a browser that opens a WebSocket. When the token expires, its watches end with status 401.
// client.Remote then calls its function Header for a new token, and resumes.
package oidc

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchserver"
)

// Options configure [New]. Issuer and Audience are required.
type Options struct {
	// Issuer is the URL of the provider, exactly as in the claim iss. The provider describes itself
	// at Issuer/.well-known/openid-configuration.
	Issuer string
	// Audience must be in the claim aud of each token. It is the client ID of the program for which
	// the provider makes the tokens.
	Audience string
	// UserClaim is the claim with the name of the user. If empty, "sub" is used, which the provider
	// never gives to another user. If it is "email", the claim email_verified must be true unless
	// it is absent.
	UserClaim string
	// GroupsClaim is the claim with the groups of the user: a list of strings, or one string. If
	// empty, "groups" is used. A token without the claim has no groups.
	GroupsClaim string
	// UserPrefix and GroupsPrefix precede the names of all users and groups, to distinguish them
	// from the names of other authenticators. They may be empty.
	UserPrefix, GroupsPrefix string
	// HTTPClient sends the requests to the provider. If nil, http.DefaultClient is used. Its
	// Timeout limits how long a request of a user waits for new keys.
	HTTPClient *http.Client
}

// New returns an Authenticator for the tokens of a provider. It reads the description of the
// provider; if that fails, the error has code Unavailable, and the program may call New again. ctx
// applies only to this request. The keys of the provider are read when they are needed, and read
// again when a token has an unknown key, but at most five times in five seconds.
//
// The Authenticator returns no user for a request without a token and for a token that is no JSON
// Web Token of Issuer, so that it can be combined with others by watchserver.FirstOf. It returns an
// error of code Unauthorized if a token of Issuer is wrong or expired, or if a name begins with
// "system:", and of code Unavailable if the keys of the provider cannot be read. Only asymmetric
// signatures are accepted. watchserver.Server.Recheck verifies the tokens of open watches again,
// which ends watches whose key the provider has withdrawn.
func New(ctx context.Context, o Options) (watchserver.Authenticator, error) {
	if o.Issuer == "" || o.Audience == "" {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Op: "configure OpenID Connect", Message: "Issuer and Audience must not be empty",
		}
	}
	if o.HTTPClient == nil {
		o.HTTPClient = http.DefaultClient
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, o.HTTPClient), o.Issuer)
	var description struct {
		Keys       string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	if err == nil {
		err = provider.Claims(&description)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &listwatch.Error{Code: listwatch.Unavailable, Op: "describe the provider " + o.Issuer, Err: err}
	}
	fetching := oidc.ClientContext(context.Background(), throttled(o.HTTPClient))
	keys := keySet{oidc.NewRemoteKeySet(fetching, description.Keys)}
	a := &authenticator{options: o, verifier: oidc.NewVerifier(o.Issuer, keys, &oidc.Config{
		ClientID: o.Audience, SupportedSigningAlgs: asymmetric(description.Algorithms),
	})}
	return a.authenticate, nil
}

// asymmetric returns the algorithms that sign with a private key, or RS256, which OpenID Connect
// requires, if there are none.
func asymmetric(algorithms []string) []string {
	all := []string{
		oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512,
		oidc.EdDSA,
	}
	found := slices.DeleteFunc(slices.Clone(algorithms), func(a string) bool { return !slices.Contains(all, a) })
	if len(found) == 0 {
		return []string{oidc.RS256}
	}
	return found
}

// An authenticator verifies the tokens of one provider.
type authenticator struct {
	options  Options
	verifier *oidc.IDTokenVerifier
}

func (a *authenticator) authenticate(r *http.Request) (watchserver.User, error) {
	token, err := watchserver.BearerToken(r)
	if err != nil || issuerOf(token) != a.options.Issuer {
		return watchserver.User{}, err
	}
	return a.verify(r.Context(), token)
}

// verify returns the user of a token.
func (a *authenticator) verify(ctx context.Context, token string) (watchserver.User, error) {
	var unavailable error
	t, err := a.verifier.Verify(context.WithValue(ctx, unavailableKey{}, &unavailable), token)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return watchserver.User{}, ctx.Err()
	case unavailable != nil:
		return watchserver.User{}, &listwatch.Error{
			Code: listwatch.Unavailable, Message: "the keys of the identity provider cannot be read", Err: unavailable,
		}
	default:
		return watchserver.User{}, unauthorized(err.Error())
	}
	var c claims
	if err := t.Claims(&c); err != nil {
		return watchserver.User{}, unauthorized("the claims of the token cannot be read")
	}
	user := watchserver.User{UID: t.Subject, Expires: t.Expiry}
	if user.Name, err = c.name(a.options); err != nil {
		return watchserver.User{}, err
	}
	if user.Groups, err = c.groups(a.options); err != nil {
		return watchserver.User{}, err
	}
	user.Recheck = func() (watchserver.User, error) {
		ctx, cancel := context.WithTimeout(context.Background(), recheckTimeout)
		defer cancel()
		return a.verify(ctx, token)
	}
	return user, nil
}

// recheckTimeout limits the time in which a recheck of an open watch reads new keys.
const recheckTimeout = 10 * time.Second

// A keySet stores the error of a failed request for keys in the variable that the context holds,
// because the verifier returns only its text.
type keySet struct{ oidc.KeySet }

type unavailableKey struct{}

func (k keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, token)
	if p, ok := ctx.Value(unavailableKey{}).(*error); ok && err != nil &&
		strings.HasPrefix(err.Error(), "fetching keys") {
		*p = err
	}
	return payload, err
}

func unauthorized(message string) error {
	return &listwatch.Error{Code: listwatch.Unauthorized, Message: message}
}
