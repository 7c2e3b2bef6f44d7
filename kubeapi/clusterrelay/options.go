package clusterrelay

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"time"

	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/framing"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// Options configure a [Handler]. Only URL is required.
type Options struct {
	// URL is the URL of the API server.
	URL *url.URL
	// Network connects to the API server. Its client certificates belong to the relay, so requests
	// of clients are passed on without them.
	Network transport.Network
	// Header returns the headers with the relay's own credentials; see [client.Remote]. It may be
	// nil.
	Header func(ctx context.Context, refresh bool) (http.Header, error)

	// Include and Exclude are patterns of resources such as "*.apps". If there are any in Include,
	// only the resources that match one are cached. A resource that matches one in Exclude is not
	// cached. Secrets and Leases are cached only if they are named without a wildcard.
	Include, Exclude []string
	// Open starts a relay of all objects of a resource. close closes the relay. If nil, a
	// [relay.Relay] with default options is used.
	Open func(o Opening) (opened *relay.Relay, close func())
	// Idle is the time after which a cache without readers is dropped. If zero, [DefaultIdle] is
	// used. A negative value means at once.
	Idle time.Duration
	// Memory limits the memory of all caches together. A resource that does not fit passes through.
	// If zero or negative, there is no limit.
	Memory int64

	// Server serves lists and watches from caches. The Handler adds the caches to its limits. The
	// Server must have no Authenticator, because the API server identifies the users. If nil, a
	// Server with default limits is used.
	Server *watchserver.Server
	// Recheck is the interval at which the rights to open watches are reviewed again. If zero,
	// [DefaultRecheck] is used.
	Recheck time.Duration
	// Certificates identifies a client by a certificate that the TLS server has verified. Its CA
	// must be the CA of the API server's clients, because the API server is asked only for the
	// rights of the user. If nil, certificates are ignored, and clients need tokens.
	Certificates watchserver.Authenticator
	// FrontProxy returns the certificate of an authenticating proxy, which may act as any user at
	// the API server. If nil, requests of clients with certificates cannot pass through.
	FrontProxy func() tls.Certificate
	// Audit makes the Handler count what clients read, and what changes; see [Handler.Audit].
	Audit bool
	// Log receives what happens to the caches. If nil, slog.Default() is used.
	Log *slog.Logger
}

// An Opening describes a relay for [Options].Open.
type Opening struct {
	Resource kubeapi.Resource
	// Encoding is the name of the encoding of the objects, json or protobuf, for logs and metrics.
	// A resource may have a relay for each of them.
	Encoding string
	// Framings are the framings of the [client.Remote] that the relay follows. They determine the
	// encoding.
	Framings []framing.Framer
	// ProbeWait is for the options of the relay.
	ProbeWait time.Duration
	// Relay has hooks for the options of the relay, and Client for the [client.Remote] that it
	// follows.
	Relay  *relay.Trace
	Client *client.Trace
}

// The defaults of [Options].
const (
	DefaultIdle    = time.Hour
	DefaultRecheck = 5 * time.Minute
)

// CheckPatterns returns an error if a pattern of [Options] is malformed.
func CheckPatterns(patterns []string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("%q: must be a resource such as deployments.apps, or a pattern such as *.apps", p)
		}
	}
	return nil
}

// openRelay is the default of Options.Open.
func (o *Options) openRelay(of Opening) (opened *relay.Relay, close func()) {
	r := of.Resource
	remote := &client.Remote{
		URL: o.URL.JoinPath(r.Path("")).String(), Network: o.Network, Header: o.Header, Trace: of.Client,
		Framings: of.Framings,
	}
	opened = relay.Open(remote, relay.Options{
		Fields: r.Fields, FieldRules: r.FieldRules(), ProbeWait: of.ProbeWait, Trace: of.Relay,
	})
	return opened, func() {
		opened.Close()
		remote.Close()
	}
}
