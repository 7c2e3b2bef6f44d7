package relaycmd

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/listen"
	"github.com/listwatch/listwatch/observe/metrics"
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

// New returns the command listwatch relay.
func New() *cobra.Command {
	var o relayOptions
	cmd := &cobra.Command{
		Use:   "relay (--upstream URL | --kubeconfig FILE) [--resource NAME]... [--cluster]",
		Short: "Serve collections of another server to any number of watchers",
		Long: `Serve collections of another server to any number of watchers. The relay needs
one watch of the upstream for each collection.

With --resource, the upstream is a server with Kubernetes' API, and the relay
serves the named resources read-only at the same paths. Without --resource,
--upstream is the URL of one collection, which the relay serves at the same
path. Versions are the versions of the upstream, so a client can resume at any relay
or at the upstream. A read of the newest state is as new as at the upstream;
see docs/relay.md.

With --cluster, the relay stands in front of a whole Kubernetes API server. It
answers lists, gets and watches from caches and passes all other requests on.
Clients use their own tokens, and see what the API server allows them to see.
With --client-ca, clients with certificates can read what is cached.

/readyz fails until the relay has the complete state, and while it lags behind
the upstream by more than --max-behind. Clients are authenticated as by serve.
The relay reads with the credentials of --upstream-token-file, --upstream-cert
or --kubeconfig, and authenticated clients see everything that it reads unless
--authorization-policy allows less.

--config reads all flags from a YAML file, and --print-config prints one.
Certificates, credentials, tokens and the policy are read again when they
change, and on SIGHUP.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if done, err := o.Config.Apply(cmd.Flags(), cmd.OutOrStdout()); done || err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	o.upstream.register(f)
	f.StringArrayVar(&o.resources, "resource", nil,
		"`resource` to relay, such as pods or widgets.v1.demo.example.com; append =Widget or =Widget,cluster to skip the discovery at the upstream (repeatable)")
	f.IntVar(&o.backfillVersions, "backfill", relay.DefaultBackfillVersions,
		"`number` of versions before the newest to load at the start, so that clients of an earlier relay can resume; 0 means the default, a negative number none")
	f.StringVar(&o.persist, "persist", "",
		"`directory` for copies of the collections, so that a relay that restarts serves them at once; Secrets are never saved")
	o.history.Register(f)
	f.DurationVar(&o.maxBehind, "max-behind", 150*time.Second,
		"maximum lag behind the upstream at which /readyz succeeds; 0 or a negative value means no maximum")
	o.cluster.register(f)
	o.AddFlags(f, "127.0.0.1:8082", "GET /debug/relays")
	return cmd
}

func (o *relayOptions) run(ctx context.Context, out, logs io.Writer) error {
	s := &relayServer{Listeners: listen.Listeners{Log: o.Logger(logs), Metrics: metrics.New()}, options: o}
	s.HandleSignals()
	defer s.Close()
	defer s.relays.close(nil)
	if err := o.ListenEarly(&s.Listeners); err != nil {
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	for _, e := range s.Endpoints {
		e.PrintRelayQuickstart(out, cli.CommandName(), s.paths)
	}
	if s.background != nil {
		return s.Serve(ctx, s.background)
	}
	return s.Serve(ctx)
}
