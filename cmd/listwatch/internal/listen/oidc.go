package listen

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/reload"
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

// authenticator returns the authenticator of the ID tokens, or nil if no provider is configured. It
// adds the file with the CAs to files.
func (o *oidcOptions) authenticator(files *reload.Files) (watchserver.Authenticator, error) {
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
	trusted, err := files.AddTLS(&tls.Config{MinVersion: tls.VersionTLS12},
		reload.File{Flag: "--oidc-ca-file", Name: o.caFile}, reload.File{}, reload.File{})
	if err != nil {
		return nil, err
	}
	p.HTTPClient = &http.Client{Transport: providerTransport(trusted), Timeout: providerTimeout}
	return oidc.New(p)
}

// A providerTransport sends each request over a connection of its own, so that changed CAs apply at
// once. There are few requests: the keys of a provider are kept.
type providerTransport func() *tls.Config

// RoundTrip implements [http.RoundTripper].
func (p providerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig, t.DisableKeepAlives = p(), true
	return t.RoundTrip(r)
}
