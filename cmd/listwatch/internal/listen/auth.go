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
)

// access is who may use the server.
type Auth struct {
	tokens    *kubeapi.Tokens // nil: there are none
	clientCAs *x509.CertPool  // nil: https asks for no certificates
	insecure  bool
}

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
	if o.tls.clientCA == "" {
		return a, nil
	}
	if o.tlsAddr == "" {
		return nil, cli.Usagef("--client-ca needs --tls-addr: certificates can't be had in clear text")
	}
	var err error
	a.clientCAs, err = remote.ReadCertificates("--client-ca", o.tls.clientCA)
	return a, err
}

// asks reports whether an endpoint asks for credentials. In clear text a client has no certificate to show.
func (a *Auth) RequiresCredentials(secure bool) bool {
	return a.tokens != nil || secure && a.clientCAs != nil
}

// authenticator returns nil where no endpoint asks for credentials.
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

// check refuses to open the server to a network where everybody could read and write.
func (a *Auth) checkAddress(flag, addr string, asks bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return cli.Usagef("%s %q: want HOST:PORT, such as 127.0.0.1:8080", flag, addr)
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
	return fmt.Errorf("%s %s: refusing to listen beyond loopback without credentials, for everybody who reaches it could read and write; "+
		"%s, or --insecure if that is meant", flag, addr, remedy(flag))
}

func remedy(flag string) string {
	switch flag {
	case "--tls-addr":
		return "give --token-file or --client-ca"
	case "--debug-addr":
		return "give an address of loopback"
	}
	return "give --token-file"
}

// isLoopback reports whether nobody but this machine can reach host; an empty one is all addresses.
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
