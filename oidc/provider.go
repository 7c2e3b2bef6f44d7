package oidc

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/listwatch/listwatch"
)

// A provider is an identity provider. The first token that arrives causes a read of its
// description.
type provider struct {
	// Immutable after construction.
	options Options
	client  *http.Client
	turn    chan struct{} // of capacity 1; holds a value while the description is read

	verifier atomic.Pointer[oidc.IDTokenVerifier] // nil before the description was read
	attempts atomic.Int64                         // the number of failed reads of the description
	failure  error                                // of the last failed read; guarded by turn
}

// describe returns the verifier of tokens. Until the description has been read, it reads the
// description. Callers that wait for the same read share its failure.
func (p *provider) describe(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	if v := p.verifier.Load(); v != nil {
		return v, nil
	}
	attempts := p.attempts.Load()
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if v := p.verifier.Load(); v != nil {
		return v, nil
	}
	if p.attempts.Load() == attempts {
		v, err := p.read(ctx)
		if err == nil || ctx.Err() != nil {
			return v, err
		}
		p.failure = err
		p.attempts.Add(1)
	}
	return nil, &listwatch.Error{
		Code: listwatch.Unavailable, Message: "the description of the identity provider cannot be read", Err: p.failure,
	}
}

// read reads the description, and stores the verifier.
func (p *provider) read(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.options.Issuer)
	if err != nil {
		return nil, err
	}
	var description struct {
		Keys       string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := found.Claims(&description); err != nil {
		return nil, err
	}
	keys := keySet{oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), p.client), description.Keys)}
	v := oidc.NewVerifier(p.options.Issuer, keys, &oidc.Config{
		ClientID: p.options.Audience, SupportedSigningAlgs: asymmetric(description.Algorithms),
	})
	p.verifier.Store(v)
	return v, nil
}

// asymmetric returns the algorithms that sign with a private key. If there are none, it returns
// RS256, which OpenID Connect requires.
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

// A keySet stores the error of a failed request for keys in the variable that the context holds,
// because the verifier returns only the text of the error.
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
