package relaycmd

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/listen"
	"github.com/listwatch/listwatch/relay"
)

// relayOptions contains the flags of relay.
type relayOptions struct {
	listen.Options
	upstream         upstreamOptions
	resources        []string
	history          cli.History
	backfillVersions int
	persist          string
	maxBehind        time.Duration
	cluster          clusterOptions
}

// clusterOptions contains the flags about a relay of a whole cluster.
type clusterOptions struct {
	enabled, audit bool
	cache, noCache []string
	idle, recheck  time.Duration
	// frontCert and frontKey are files with the certificate of an authenticating proxy.
	frontCert, frontKey string
}

func (o *clusterOptions) register(f *pflag.FlagSet) {
	f.BoolVar(&o.enabled, "cluster", false,
		"relay a whole Kubernetes API server: answer reads from caches, and pass all other requests on")
	f.StringSliceVar(&o.cache, "cache", nil,
		"`patterns` of the resources to cache with --cluster, such as pods,*.apps; if empty, all except Secrets and Leases, which must be named")
	f.StringSliceVar(&o.noCache, "no-cache", nil, "`patterns` of the resources not to cache with --cluster, such as events,*.example.com")
	f.BoolVar(&o.audit, "audit", false,
		"count which client reads what through --cluster, and what changes: GET /debug/audit at --debug-addr")
	f.StringVar(&o.frontCert, "front-proxy-cert", "",
		"PEM `file` with a certificate of the front proxy of the API server (--requestheader-client-ca-file), for requests of clients with certificates that --cluster passes on")
	f.StringVar(&o.frontKey, "front-proxy-key", "", "PEM `file` with the key of --front-proxy-cert")
	f.DurationVar(&o.idle, "cache-idle", time.Hour, "time after which a cache of --cluster without readers is dropped")
	f.DurationVar(&o.recheck, "recheck", 5*time.Minute,
		"`interval` at which --cluster reviews the rights to open watches again, and ends those without")
}

// A relayServer holds the listeners and the relays of the relay command.
type relayServer struct {
	listen.Listeners
	options  *relayOptions
	upstream *upstream
	relays   relaySet
	paths    []string         // paths for the quickstart
	audit    http.HandlerFunc // of --audit, or nil
	// background runs while the server serves. If nil, there is nothing to run.
	background func(context.Context)
}

// A namedRelay is the relay of one collection.
type namedRelay struct {
	name string
	*relay.Relay
	close func()
}

// A relaySet holds the open relays.
type relaySet struct {
	mu   sync.Mutex
	open []*namedRelay // guarded by mu
}

func (s *relaySet) add(r *namedRelay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, r)
}

// all returns the open relays in the order in which they were added.
func (s *relaySet) all() []*namedRelay {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.open)
}

// close closes r and removes it. If r is nil, close closes all relays.
func (s *relaySet) close(r *namedRelay) {
	s.mu.Lock()
	var closing []*namedRelay
	s.open = slices.DeleteFunc(s.open, func(o *namedRelay) bool {
		if r != nil && o != r {
			return false
		}
		closing = append(closing, o)
		return true
	})
	s.mu.Unlock()
	for _, r := range closing {
		r.close()
	}
}
