package relaycmd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
	"github.com/listwatch/listwatch/conformance/adapters"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/transport"
	"github.com/spf13/pflag"
)

// upstreamOptions are the flags of relay about the server that it follows.
type upstreamOptions struct {
	remote.Connection
	url, kubeconfig string
	tokenFile       string
}

func (o *upstreamOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.url, "upstream", "", "what to follow: with --resource a server, as in https://127.0.0.1:6443; else the URL of a collection")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "file that names the upstream and has credentials for it, as kubectl reads it")
	f.StringVar(&o.Token, "upstream-token", "", "bearer token for the upstream; others on this machine may see it, --upstream-token-file is safer")
	f.StringVar(&o.tokenFile, "upstream-token-file", "", "file with the bearer token for the upstream, read again when the upstream refuses it")
	f.StringVar(&o.CA, "upstream-ca", "", "file with the CAs to trust, in PEM; empty: the system's")
	f.StringVar(&o.Cert, "upstream-cert", "", "file with a client certificate for the upstream, in PEM")
	f.StringVar(&o.Key, "upstream-key", "", "file with the key of --upstream-cert, in PEM")
	f.BoolVar(&o.SkipVerify, "upstream-insecure-skip-verify", false, "believe any certificate of the upstream")
	f.StringVar(&o.Transport, "upstream-transport", "auto", "auto, chunked, h2 or websocket")
	f.BoolVar(&o.Compress, "compress", false, "ask the upstream to compress: zstd or gzip; permessage-deflate over WebSocket")
}

// upstreamAccess is how the upstream is reached.
type upstream struct {
	base       *url.URL
	network    transport.Network
	transports []transport.Client
	header     func(ctx context.Context, refresh bool) (http.Header, error) // nil: none
	compress   bool
}

func (o *upstreamOptions) connect() (*upstream, error) {
	switch {
	case (o.url == "") == (o.kubeconfig == ""):
		return nil, cli.Usagef("want one of --upstream and --kubeconfig")
	case o.Token != "" && o.tokenFile != "":
		return nil, cli.Usagef("--upstream-token and --upstream-token-file exclude each other")
	}
	config, err := o.TLSConfig()
	if err != nil {
		return nil, o.withUpstreamFlags(err)
	}
	base, given := o.url, adapters.Options{TLS: config}
	if o.kubeconfig != "" {
		if base, given, err = adapters.ReadKubeconfig(o.kubeconfig, given); err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w", err)
		}
	}
	a := &upstream{network: transport.Network{TLS: given.TLS}, compress: o.Compress}
	if a.base, err = remote.ParseURL(base); err != nil {
		return nil, err
	}
	if a.transports, err = o.Transports(a.network); err != nil {
		return nil, o.withUpstreamFlags(err)
	}
	switch {
	case o.tokenFile != "":
		a.header = tokenFileHeader(o.tokenFile)
	case o.Token != "":
		a.header = fixedHeader(http.Header{"Authorization": {"Bearer " + o.Token}})
	case len(given.Header) > 0:
		a.header = fixedHeader(given.Header)
	}
	if a.header != nil {
		_, err = a.header(context.Background(), false)
	}
	return a, err
}

// renamed makes a message about the flags of other commands one about those of relay.
func (o *upstreamOptions) withUpstreamFlags(err error) error {
	text := strings.ReplaceAll(err.Error(), "--server", "--upstream")
	for _, name := range []string{"ca", "cert", "key", "transport"} {
		text = strings.ReplaceAll(text, "--"+name, "--upstream-"+name)
	}
	if e, ok := errors.AsType[*cli.ExitError](err); ok && e.Code == cli.ExitUsage {
		return cli.UsageError(errors.New(text))
	}
	return errors.New(text)
}

func fixedHeader(h http.Header) func(context.Context, bool) (http.Header, error) {
	return func(context.Context, bool) (http.Header, error) { return h, nil }
}

// tokenFrom reads the token anew for each request: whoever rotates it replaces the file.
func tokenFileHeader(file string) func(context.Context, bool) (http.Header, error) {
	return func(context.Context, bool) (http.Header, error) {
		token, err := os.ReadFile(file)
		if err == nil && len(strings.TrimSpace(string(token))) == 0 {
			err = errors.New("it is empty")
		}
		if err != nil {
			return nil, fmt.Errorf("--upstream-token-file %s: %w", file, err)
		}
		return http.Header{"Authorization": {"Bearer " + strings.TrimSpace(string(token))}}, nil
	}
}

// remote returns the collection at a path below the upstream.
func (a *upstream) newRemote(below string) *client.Remote {
	u := a.base
	if below != "" {
		u = u.JoinPath(below)
	}
	return &client.Remote{URL: u.String(), Network: a.network, Transports: a.transports, Header: a.header, Compress: a.compress}
}

// resource returns the resource that text names, as the upstream has it.
func (a *upstream) resource(ctx context.Context, text string) (kubeapi.Resource, error) {
	if strings.Contains(text, "=") {
		r, err := kubeapi.ParseResource(text)
		if err != nil {
			return r, cli.UsageError(err)
		}
		return r, nil
	}
	r, known, err := remote.FindResource(text)
	if err != nil {
		return r, err
	}
	found, err := a.discover(ctx, r)
	if err != nil {
		return r, fmt.Errorf("--resource %s: ask the upstream what it is: %w", text, err)
	}
	r.Kind, r.Namespaced, r.Singular = found.Kind, found.Namespaced, found.SingularName
	r.ShortNames, r.Categories = found.ShortNames, found.Categories
	if !known {
		r.Schema = nil
	}
	r.Scale = nil // the scale is the upstream's to answer
	return r, nil
}

// discover asks the upstream for the properties of r.
func (a *upstream) discover(ctx context.Context, r kubeapi.Resource) (d remote.DiscoveredResource, err error) {
	header := make(http.Header)
	if a.header != nil {
		if header, err = a.header(ctx, false); err != nil {
			return d, err
		}
		header = header.Clone()
	}
	header.Set("Accept", "application/json")
	return remote.Discover(ctx, a.network.TLS.Clone(), header, a.base, r)
}
