package oidc

import "net/http"

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
	// Timeout limits how long a request of a user waits for new keys. If it is zero, 10 s is used.
	HTTPClient *http.Client
}
