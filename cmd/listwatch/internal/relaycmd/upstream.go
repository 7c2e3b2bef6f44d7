package relaycmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/kubeconfig"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/reload"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/transport"
)

// upstreamOptions contains the flags about the upstream.
type upstreamOptions struct {
	remote.Connection
	url, kubeconfig string
	tokenFile       string
}

func (o *upstreamOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.url, "upstream", "",
		"`URL` of the upstream: with --resource a server such as https://127.0.0.1:6443, otherwise a collection")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` with the upstream and its credentials")
	f.StringVar(&o.Token, "upstream-token", "",
		"bearer `token` for the upstream, visible to other users of this machine; --upstream-token-file is safer")
	f.StringVar(&o.tokenFile, "upstream-token-file", "",
		"`file` with the bearer token for the upstream; it is read again for each request")
	f.StringVar(&o.CA, "upstream-ca", "", "PEM `file` with the CAs to trust; if empty, the CAs of the system")
	f.StringVar(&o.Cert, "upstream-cert", "", "PEM `file` with a client certificate for the upstream")
	f.StringVar(&o.Key, "upstream-key", "", "PEM `file` with the key of --upstream-cert")
	f.BoolVar(&o.SkipVerify, "upstream-insecure-skip-verify", false, "do not verify the certificate of the upstream")
	f.StringVar(&o.Transport, "upstream-transport", "auto", "`transport`: auto, chunked, h2 or websocket")
	f.BoolVar(&o.Compress, "compress", false, "request compression: gzip or zstd, or permessage-deflate over WebSocket")
}

// An upstream is the server that the relay reads from.
type upstream struct {
	base       *url.URL
	network    transport.Network
	transports []transport.Client
	header     func(ctx context.Context, refresh bool) (http.Header, error) // may be nil
	compress   bool
}

// connect returns the upstream that the flags describe. It adds the files with CAs and credentials
// to files, except the file of --upstream-token-file, which is read for each request.
func (o *upstreamOptions) connect(files *reload.Files) (*upstream, error) {
	switch {
	case (o.url == "") == (o.kubeconfig == ""):
		return nil, cli.Usagef("set either --upstream or --kubeconfig")
	case o.Token != "" && o.tokenFile != "":
		return nil, cli.Usagef("set either --upstream-token or --upstream-token-file, not both")
	case (o.Cert == "") != (o.Key == ""):
		return nil, cli.Usagef("--upstream-cert and --upstream-key must be set together")
	}
	common := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: o.SkipVerify}
	current, err := files.AddTLS(common, reload.File{Flag: "--upstream-ca", Name: o.CA},
		reload.File{Flag: "--upstream-cert", Name: o.Cert}, reload.File{Flag: "--upstream-key", Name: o.Key})
	if err != nil {
		return nil, err
	}
	a := &upstream{network: transport.Network{TLSConfig: current}, compress: o.Compress}
	base := o.url
	if o.kubeconfig != "" {
		if base, err = o.useKubeconfig(files, common, a); err != nil {
			return nil, err
		}
	}
	if a.base, err = remote.ParseURL(base); err != nil {
		return nil, err
	}
	if a.transports, err = o.Transports("--upstream-transport", a.network); err != nil {
		return nil, err
	}
	switch {
	case o.tokenFile != "":
		a.header = tokenFileHeader(o.tokenFile)
	case o.Token != "":
		a.header = fixedHeader(http.Header{"Authorization": {"Bearer " + o.Token}})
	}
	if a.header != nil {
		_, err = a.header(context.Background(), false)
	}
	return a, err
}

// useKubeconfig configures an upstream with the CAs and credentials that the kubeconfig contains,
// and keeps them up to date. It returns the URL of the server.
func (o *upstreamOptions) useKubeconfig(files *reload.Files, common *tls.Config, a *upstream) (base string, err error) {
	var read *kubeconfig.Config
	var current atomic.Pointer[kubeconfig.Config]
	fromFlags := a.network.TLSConfig
	a.network.TLSConfig = func() *tls.Config {
		flags, c := fromFlags(), current.Load().TLS.Clone()
		if c.RootCAs == nil {
			c.RootCAs = flags.RootCAs
		}
		if c.Certificates == nil {
			c.Certificates = flags.Certificates
		}
		return c
	}
	a.header = func(context.Context, bool) (http.Header, error) { return current.Load().Header, nil }
	err = files.AddFunc("--kubeconfig "+o.kubeconfig, func() (contents [][]byte, err error) {
		if read, err = kubeconfig.Read(o.kubeconfig, common); err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w", err)
		}
		return read.Contents, nil
	}, func([][]byte) error {
		if last := current.Load(); last != nil && last.Server != read.Server {
			return fmt.Errorf("the server has changed from %s to %s: restart the relay to use it", last.Server,
				read.Server)
		}
		current.Store(read)
		return nil
	})
	if err != nil {
		return "", err
	}
	return read.Server, nil
}

func fixedHeader(h http.Header) func(context.Context, bool) (http.Header, error) {
	return func(context.Context, bool) (http.Header, error) { return h, nil }
}

// tokenFileHeader reads the token file for each request, because the file may be replaced.
func tokenFileHeader(file string) func(context.Context, bool) (http.Header, error) {
	return func(context.Context, bool) (http.Header, error) {
		token, err := os.ReadFile(file)
		if err == nil && len(strings.TrimSpace(string(token))) == 0 {
			err = errors.New("the file is empty")
		}
		if err != nil {
			return nil, fmt.Errorf("--upstream-token-file %s: %w", file, err)
		}
		return http.Header{"Authorization": {"Bearer " + strings.TrimSpace(string(token))}}, nil
	}
}

// newRemote returns a client for the collection at a path below the upstream's URL.
func (u *upstream) newRemote(below string) *client.Remote {
	at := u.base
	if below != "" {
		at = at.JoinPath(below)
	}
	return &client.Remote{
		URL: at.String(), Network: u.network, Transports: u.transports, Header: u.header, Compress: u.compress,
	}
}

// resource returns the resource with the given name, as the upstream declares it.
func (u *upstream) resource(ctx context.Context, text string) (kubeapi.Resource, error) {
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
	found, err := u.discover(ctx, r)
	if err != nil {
		return r, fmt.Errorf("--resource %s: discovery at the upstream failed: %w", text, err)
	}
	r.Kind, r.Namespaced, r.Singular = found.Kind, found.Namespaced, found.SingularName
	r.ShortNames, r.Categories = found.ShortNames, found.Categories
	if !known {
		r.Schema = nil
	}
	r.Scale = nil // a relay does not serve the scale subresource
	return r, nil
}

// discover requests the properties of r from the upstream.
func (u *upstream) discover(ctx context.Context, r kubeapi.Resource) (d remote.DiscoveredResource, err error) {
	header := make(http.Header)
	if u.header != nil {
		if header, err = u.header(ctx, false); err != nil {
			return d, err
		}
		header = header.Clone()
	}
	header.Set("Accept", "application/json")
	return remote.Discover(ctx, u.network.TLSConfig().Clone(), header, u.base, r)
}
