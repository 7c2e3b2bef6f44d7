package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/adapters"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/transport"
	"github.com/spf13/pflag"
)

// upstreamOptions are the flags of relay about the server that it follows.
type upstreamOptions struct {
	connection
	url, kubeconfig string
	tokenFile       string
}

func (o *upstreamOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.url, "upstream", "", "what to follow: with --resource a server, as in https://127.0.0.1:6443; else the URL of a collection")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "file that names the upstream and has credentials for it, as kubectl reads it")
	f.StringVar(&o.token, "upstream-token", "", "bearer token for the upstream; others on this machine may see it, --upstream-token-file is safer")
	f.StringVar(&o.tokenFile, "upstream-token-file", "", "file with the bearer token for the upstream, read again when the upstream refuses it")
	f.StringVar(&o.ca, "upstream-ca", "", "file with the CAs to trust, in PEM; empty: the system's")
	f.StringVar(&o.cert, "upstream-cert", "", "file with a client certificate for the upstream, in PEM")
	f.StringVar(&o.key, "upstream-key", "", "file with the key of --upstream-cert, in PEM")
	f.BoolVar(&o.skipVerify, "upstream-insecure-skip-verify", false, "believe any certificate of the upstream")
	f.StringVar(&o.transport, "upstream-transport", "auto", "auto, chunked, h2 or websocket")
	f.BoolVar(&o.compress, "compress", false, "ask the upstream to compress: zstd or gzip; permessage-deflate over WebSocket")
}

// upstreamAccess is how the upstream is reached.
type upstreamAccess struct {
	base       *url.URL
	network    transport.Network
	transports []transport.Client
	header     func(ctx context.Context, refresh bool) (http.Header, error) // nil: none
	compress   bool
}

func (o *upstreamOptions) access() (*upstreamAccess, error) {
	switch {
	case (o.url == "") == (o.kubeconfig == ""):
		return nil, usagef("want one of --upstream and --kubeconfig")
	case o.token != "" && o.tokenFile != "":
		return nil, usagef("--upstream-token and --upstream-token-file exclude each other")
	}
	config, err := o.tlsConfig()
	if err != nil {
		return nil, o.renamed(err)
	}
	base, given := o.url, adapters.Options{TLS: config}
	if o.kubeconfig != "" {
		if base, given, err = adapters.ReadKubeconfig(o.kubeconfig, given); err != nil {
			return nil, fmt.Errorf("--kubeconfig: %w", err)
		}
	}
	a := &upstreamAccess{network: transport.Network{TLS: given.TLS}, compress: o.compress}
	if a.base, err = parseURL(base); err != nil {
		return nil, err
	}
	if a.transports, err = o.transports(a.network); err != nil {
		return nil, o.renamed(err)
	}
	switch {
	case o.tokenFile != "":
		a.header = tokenFrom(o.tokenFile)
	case o.token != "":
		a.header = always(http.Header{"Authorization": {"Bearer " + o.token}})
	case len(given.Header) > 0:
		a.header = always(given.Header)
	}
	if a.header != nil {
		_, err = a.header(context.Background(), false)
	}
	return a, err
}

// renamed makes a message about the flags of other commands one about those of relay.
func (o *upstreamOptions) renamed(err error) error {
	text := strings.ReplaceAll(err.Error(), "--server", "--upstream")
	for _, name := range []string{"ca", "cert", "key", "transport"} {
		text = strings.ReplaceAll(text, "--"+name, "--upstream-"+name)
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return usageError{errors.New(text)}
	}
	return errors.New(text)
}

func always(h http.Header) func(context.Context, bool) (http.Header, error) {
	return func(context.Context, bool) (http.Header, error) { return h, nil }
}

// tokenFrom reads the token anew for each request: whoever rotates it replaces the file.
func tokenFrom(file string) func(context.Context, bool) (http.Header, error) {
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
func (a *upstreamAccess) remote(below string) *client.Remote {
	u := a.base
	if below != "" {
		u = u.JoinPath(below)
	}
	return &client.Remote{URL: u.String(), Network: a.network, Transports: a.transports, Header: a.header, Compress: a.compress}
}

// resource returns the resource that text names, as the upstream has it.
func (a *upstreamAccess) resource(ctx context.Context, text string) (kubeapi.Resource, error) {
	if strings.Contains(text, "=") {
		r, err := kubeapi.ParseResource(text)
		if err != nil {
			return r, usageError{err}
		}
		return r, nil
	}
	r, known, err := findResource(text)
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

// A discovered resource is one of an APIResourceList (Kubernetes, "The Kubernetes API", Discovery).
type discovered struct {
	Name, SingularName, Kind string
	Namespaced               bool
	ShortNames, Categories   []string
}

// discover asks the upstream what it has as r.
func (a *upstreamAccess) discover(ctx context.Context, r kubeapi.Resource) (d discovered, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, scopeTime, fmt.Errorf("no answer within %v", scopeTime))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base.JoinPath(path.Dir(r.Path(""))).String(), nil)
	if err != nil {
		return d, err
	}
	if a.header != nil {
		if request.Header, err = a.header(ctx, false); err != nil {
			return d, err
		}
		request.Header = request.Header.Clone()
	}
	request.Header.Set("Accept", "application/json")
	carrier := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: a.tls(), ForceAttemptHTTP2: true, IdleConnTimeout: time.Second}
	defer carrier.CloseIdleConnections()
	response, err := carrier.RoundTrip(request)
	if err != nil {
		return d, err
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusNotFound {
		return d, transport.ResponseError(response)
	}
	defer response.Body.Close()
	var list struct{ Resources []discovered }
	if response.StatusCode == http.StatusOK {
		if err := json.NewDecoder(io.LimitReader(response.Body, scopeBytes)).Decode(&list); err != nil {
			return d, err
		}
	}
	for _, d := range list.Resources {
		if d.Name == r.Plural {
			return d, nil
		}
	}
	return d, &listwatch.Error{Code: listwatch.NotFound, Message: "it has no " + r.Plural + " in " + r.APIVersion()}
}

func (a *upstreamAccess) tls() *tls.Config { return a.network.TLS.Clone() }
