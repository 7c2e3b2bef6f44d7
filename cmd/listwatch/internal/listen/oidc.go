package listen

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/oidc"
	"github.com/listwatch/listwatch/watchserver"
)

// oidcOptions holds the flags that configure the identity provider.
type oidcOptions struct {
	provider oidc.Options
	caFile   string
}

func (o *oidcOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.provider.Issuer, "oidc-issuer", "",
		"`URL` of an OpenID Connect provider, whose ID tokens identify users")
	f.StringVar(&o.provider.Audience, "oidc-audience", "",
		"`name` that must be in the claim aud of each ID token: the client ID at the provider")
	f.StringVar(&o.provider.UserClaim, "oidc-username-claim", "sub", "`claim` with the name of the user")
	f.StringVar(&o.provider.UserPrefix, "oidc-username-prefix", "", "`prefix` of the names of these users")
	f.StringVar(&o.provider.GroupsClaim, "oidc-groups-claim", "groups", "`claim` with the groups of the user")
	f.StringVar(&o.provider.GroupsPrefix, "oidc-groups-prefix", "", "`prefix` of the names of these groups")
	f.StringVar(&o.caFile, "oidc-ca-file", "",
		"PEM `file` with the CAs of the provider; if empty, the CAs of the system")
}

// providerTimeout limits the time of a request to the provider.
const providerTimeout = 10 * time.Second

// authenticator returns the authenticator of the ID tokens, or nil if no provider is configured.
func (o *oidcOptions) authenticator() (watchserver.Authenticator, error) {
	p := o.provider
	if p.Issuer == "" && p.Audience == "" {
		return nil, nil
	}
	if p.Issuer == "" || p.Audience == "" {
		return nil, cli.Usagef("--oidc-issuer and --oidc-audience must be set together")
	}
	u, err := url.Parse(p.Issuer)
	if err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && isLocalHost(u.Host)) {
		return nil, cli.Usagef("--oidc-issuer %q: must be an https URL, because the keys of the provider come from there", p.Issuer)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if o.caFile != "" {
		data, err := os.ReadFile(o.caFile)
		if err != nil {
			return nil, fmt.Errorf("--oidc-ca-file: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("--oidc-ca-file %s: the file contains no certificate in PEM", o.caFile)
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	}
	p.HTTPClient = &http.Client{Transport: transport, Timeout: providerTimeout}
	return oidc.New(p)
}
