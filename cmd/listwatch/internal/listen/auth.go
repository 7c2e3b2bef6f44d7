package listen

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/abac"
)

// Auth determines which clients may use the server.
type Auth struct {
	tokens    *kubeapi.Tokens // nil if there are no tokens
	clientCAs *x509.CertPool  // nil if TLS endpoints request no client certificates
	policy    *abac.Policy    // nil if every user may do everything
	insecure  bool
}

// ReadAuth reads the files that the flags about authentication and authorization name.
func (o *Options) ReadAuth() (*Auth, error) {
	a := &Auth{insecure: o.insecure}
	if o.tokenFile != "" {
		f, err := os.Open(o.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
		defer f.Close()
		if a.tokens, err = kubeapi.ReadTokens(f); err != nil {
			return nil, fmt.Errorf("--token-file %s: %w", o.tokenFile, err)
		}
	}
	if o.policyFile != "" {
		f, err := os.Open(o.policyFile)
		if err != nil {
			return nil, fmt.Errorf("--authorization-policy: %w", err)
		}
		defer f.Close()
		if a.policy, err = abac.Read(f); err != nil {
			return nil, fmt.Errorf("--authorization-policy %s: %w", o.policyFile, err)
		}
	}
	if o.tls.clientCA == "" {
		return a, nil
	}
	if o.tlsAddr == "" {
		return nil, cli.Usagef("--client-ca requires --tls-addr: client certificates need TLS")
	}
	var err error
	a.clientCAs, err = remote.ReadCertificates("--client-ca", o.tls.clientCA)
	return a, err
}

// RequiresCredentials reports whether an endpoint requires credentials. secure is true if the
// endpoint uses TLS, without which clients cannot send certificates.
func (a *Auth) RequiresCredentials(secure bool) bool {
	return a.tokens != nil || secure && a.clientCAs != nil
}

// Authenticator returns nil if no endpoint requires credentials.
func (a *Auth) Authenticator() kubeapi.Authenticator {
	var all []kubeapi.Authenticator
	if a.clientCAs != nil {
		all = append(all, kubeapi.ClientCertificate)
	}
	if a.tokens != nil {
		all = append(all, a.tokens.Authenticate)
	}
	if all == nil {
		return nil
	}
	known := kubeapi.FirstOf(all...)
	return func(r *http.Request) (kubeapi.User, error) {
		if !a.RequiresCredentials(r.TLS != nil) {
			return kubeapi.Anonymous(), nil
		}
		return known(r)
	}
}

// Authorizer returns nil if every user may do everything.
func (a *Auth) Authorizer() kubeapi.Authorizer {
	if a.policy == nil {
		return nil
	}
	return a.policy.Authorize
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
	return fmt.Errorf("%s %s: refusing to listen beyond loopback without credentials, because every client could read and write; "+
		"%s, or set --insecure to allow it", flag, addr, remedy(flag))
}

func remedy(flag string) string {
	switch flag {
	case "--tls-addr":
		return "set --token-file or --client-ca"
	case "--debug-addr":
		return "use a loopback address"
	}
	return "set --token-file"
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
