// Package oidc identifies users by the JSON Web Tokens of an OpenID Connect provider, such as
// Keycloak, Dex, Okta, Google or Microsoft Entra ID:
//
//	authenticator, err := oidc.New(oidc.Options{
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
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchserver"
)

// New returns an Authenticator for the tokens of a provider. It sends no request. The description
// of the provider is read when the first token of Issuer arrives. The keys are read when they are
// needed, and again when a token has an unknown key. There are at most five requests to the
// provider in five seconds.
//
// The Authenticator returns no user for a request without a token and for a token that is not a
// JSON Web Token of Issuer, so that watchserver.FirstOf can combine it with others. It returns an
// error of code Unauthorized if a token of Issuer is wrong or expired, or if a name begins with
// "system:". The code is Unavailable if the description or the keys of the provider cannot be read.
// Only asymmetric signatures are accepted. watchserver.Server.Recheck verifies the tokens of open
// watches again, and so ends watches whose key the provider has withdrawn.
func New(o Options) (watchserver.Authenticator, error) {
	if o.Issuer == "" || o.Audience == "" {
		return nil, &listwatch.Error{
			Code: listwatch.Invalid, Op: "configure OpenID Connect", Message: "Issuer and Audience must not be empty",
		}
	}
	if o.HTTPClient == nil {
		o.HTTPClient = http.DefaultClient
	}
	a := &authenticator{provider: provider{options: o, client: throttled(o.HTTPClient), turn: make(chan struct{}, 1)}}
	return a.authenticate, nil
}

// An authenticator verifies the tokens of one provider.
type authenticator struct{ provider }

func (a *authenticator) authenticate(r *http.Request) (watchserver.User, error) {
	token, err := watchserver.BearerToken(r)
	if err != nil || issuerOf(token) != a.options.Issuer {
		return watchserver.User{}, err
	}
	return a.verify(r.Context(), token)
}

// verify returns the user of a token.
func (a *authenticator) verify(ctx context.Context, token string) (watchserver.User, error) {
	verifier, err := a.describe(ctx)
	if err != nil {
		return watchserver.User{}, err
	}
	var unavailable error
	t, err := verifier.Verify(context.WithValue(ctx, unavailableKey{}, &unavailable), token)
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
