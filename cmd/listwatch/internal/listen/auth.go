package listen

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/reload"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/abac"
	"github.com/listwatch/listwatch/kubeapi/tokenfile"
	"github.com/listwatch/listwatch/watchserver"
)

// Auth determines which clients may use the server. Its files are read again when they change.
type Auth struct {
	insecure bool
	foreign  bool // another server identifies the users
	tls      tlsOptions
	oidc     watchserver.Authenticator        // of ID tokens; nil if there is no provider
	tokens   *tokenfile.Tokens                // nil if there are no tokens
	cas      *atomic.Pointer[trustedCAs]      // nil if TLS endpoints request no client certificates
	policy   *atomic.Pointer[abac.Policy]     // nil if every user may do everything
	pair     *atomic.Pointer[tls.Certificate] // the certificate of the server
}

// ReadAuth reads the files that the flags about authentication and authorization name, and adds
// them to files.
func (o *Options) ReadAuth(files *reload.Files) (*Auth, error) {
	a := &Auth{insecure: o.insecure, tls: o.tls, pair: new(atomic.Pointer[tls.Certificate])}
	var err error
	if a.oidc, err = o.oidc.authenticator(files); err != nil {
		return nil, err
	}
	if o.tokenFile != "" {
		a.tokens = new(tokenfile.Tokens)
		err := files.Add(func(contents [][]byte) error {
			return a.tokens.Replace(bytes.NewReader(contents[0]))
		}, reload.File{Flag: "--token-file", Name: o.tokenFile})
		if err != nil {
			return nil, err
		}
	}
	if o.policyFile != "" {
		a.policy = new(atomic.Pointer[abac.Policy])
		err := files.Add(func(contents [][]byte) error {
			policy, err := abac.Read(bytes.NewReader(contents[0]))
			if err == nil {
				a.policy.Store(policy)
			}
			return err
		}, reload.File{Flag: "--authorization-policy", Name: o.policyFile})
		if err != nil {
			return nil, err
		}
	}
	if o.tls.clientCA == "" {
		return a, nil
	}
	if o.tlsAddr == "" {
		return nil, cli.Usagef("--client-ca requires --tls-addr: client certificates need TLS")
	}
	a.cas = new(atomic.Pointer[trustedCAs])
	return a, files.Add(func(contents [][]byte) error {
		cas, err := a.parseCAs(contents[0])
		if err == nil {
			a.cas.Store(cas)
		}
		return err
	}, reload.File{Flag: "--client-ca", Name: o.tls.clientCA})
}

// UseForeignUsers makes the endpoints of a require tokens or client certificates. Another server
// checks the tokens. UseForeignUsers returns an error if a flag configures users or rights of this
// server.
func (o *Options) UseForeignUsers(a *Auth) error {
	if o.tokenFile != "" || o.policyFile != "" || a.oidc != nil {
		return cli.Usagef("the upstream identifies the users: --token-file, --oidc-issuer and " +
			"--authorization-policy have no effect")
	}
	a.foreign = true
	return nil
}

// acceptsTokens reports whether the endpoints accept tokens.
func (a *Auth) acceptsTokens() bool { return a.tokens != nil || a.oidc != nil || a.foreign }

// RequiresCredentials reports whether an endpoint requires credentials. secure is true if the
// endpoint uses TLS, without which clients cannot send certificates.
func (a *Auth) RequiresCredentials(secure bool) bool {
	return a.acceptsTokens() || secure && a.cas != nil
}

// Authenticator returns the authenticator of requests, or nil if no endpoint requires credentials.
func (a *Auth) Authenticator() watchserver.Authenticator {
	var all []watchserver.Authenticator
	if certificates := a.ClientCertificates(); certificates != nil {
		all = append(all, certificates)
	}
	if a.oidc != nil {
		// It ignores tokens of other issuers. The token file refuses tokens that it does not
		// contain, so it comes last.
		all = append(all, a.oidc)
	}
	if a.tokens != nil {
		all = append(all, a.tokens.Authenticate)
	}
	if all == nil {
		return nil
	}
	known := watchserver.FirstOf(all...)
	return func(r *http.Request) (kubeapi.User, error) {
		if !a.RequiresCredentials(r.TLS != nil) {
			return kubeapi.Anonymous(), nil
		}
		return known(r)
	}
}

// Authorizer returns the authorizer of requests, or nil if every user may do everything.
func (a *Auth) Authorizer() kubeapi.Authorizer {
	if a.policy == nil {
		return nil
	}
	return func(ctx context.Context, user kubeapi.User, at kubeapi.Attributes) error {
		return a.policy.Load().Authorize(ctx, user, at)
	}
}

// Rules returns the function for kubeapi.Handler.RulesFor. It is nil if every user may do
// everything.
func (a *Auth) Rules() func(ctx context.Context, user kubeapi.User, namespace string) (kubeapi.Rules, error) {
	if a.policy == nil {
		return nil
	}
	return func(ctx context.Context, user kubeapi.User, namespace string) (kubeapi.Rules, error) {
		return a.policy.Load().RulesFor(ctx, user, namespace)
	}
}

// checkAddress returns an error if addr is not a loopback address and the endpoint requires
// no credentials, unless --insecure is set.
func (a *Auth) checkAddress(flag, addr string, asks bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return cli.Usagef("%s %q: must be HOST:PORT, such as 127.0.0.1:8080", flag, addr)
	}
	if asks || a.insecure {
		return nil
	}
	loopback, err := isLoopback(host)
	if err != nil {
		return fmt.Errorf("%s %s: %w", flag, addr, err)
	}
	if loopback {
		return nil
	}
	return fmt.Errorf(
		"%s %s: refusing to listen beyond loopback without credentials, because every client could read and write; "+
			"%s, or set --insecure to allow it", flag, addr, remedy(flag))
}

func remedy(flag string) string {
	switch flag {
	case "--tls-addr":
		return "set --token-file, --oidc-issuer or --client-ca"
	case "--debug-addr":
		return "use a loopback address"
	}
	return "set --token-file or --oidc-issuer"
}

// isLoopback reports whether host can only be reached from this machine. An empty host
// means all addresses.
func isLoopback(host string) (bool, error) {
	if host == "" {
		return false, nil
	}
	addr, err := net.ResolveIPAddr("ip", host)
	if err != nil {
		return false, err
	}
	return addr.IP.IsLoopback(), nil
}
