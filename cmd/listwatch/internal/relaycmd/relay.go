package relaycmd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path"
	"time"

	"github.com/spf13/cobra"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/listen"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/observe/metrics"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
)

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

// prepare performs everything that can fail before the server starts.
func (s *relayServer) prepare(ctx context.Context) error {
	o := s.options
	access, err := o.ReadAuth(&s.Files)
	if err != nil {
		return err
	}
	if info, err := os.Stat(o.persist); o.persist != "" && (err != nil || !info.IsDir()) {
		return cli.Usagef("--persist %s: must be a directory that exists", o.persist)
	}
	if s.upstream, err = o.upstream.connect(&s.Files); err != nil {
		return err
	}
	switch {
	case o.cluster.enabled:
		err = s.relayCluster(access)
	case len(o.resources) > 0:
		err = s.relayResources(ctx, access)
	default:
		err = s.relayCollection(access)
	}
	if err != nil {
		return err
	}
	debug := s.NewDebugMux()
	debug.HandleFunc("GET /debug/relays", s.serveStatus)
	if s.audit != nil {
		debug.HandleFunc("GET /debug/audit", s.audit)
	}
	s.Debug = debug
	return o.Listen(access, &s.Listeners)
}

// relayResources relays resources at the paths of Kubernetes' API.
func (s *relayServer) relayResources(ctx context.Context, a *listen.Auth) error {
	api := &kubeapi.Handler{Authorize: a.Authorizer(), RulesFor: a.Rules(), Ready: s.ready}
	if err := s.options.Configure(&api.Server, &s.Listeners); err != nil {
		return err
	}
	api.Server.Access.Authenticator = a.Authenticator()
	for _, text := range s.options.resources {
		r, err := s.upstream.resource(ctx, text)
		if err != nil {
			return remote.Advise(err, "--upstream", "--upstream-ca")
		}
		r.ReadOnly = true
		source := s.openRelay(s.options.specOf(r))
		err = api.Add(r, store.New(r.CollectionSpec(), readOnlyBackend{source.Relay}))
		if errors.Is(err, listwatch.AlreadyExists) {
			return cli.Usagef("--resource %s: given twice", text)
		}
		if err != nil {
			return err
		}
		s.paths = append(s.paths, r.Path(""))
	}
	s.WatchServer, s.Drain, s.Handler = &api.Server, api.Drain, api
	return nil
}

// relayCollection relays the collection at the URL of the upstream.
func (s *relayServer) relayCollection(a *listen.Auth) error {
	server := new(watchserver.Server)
	if err := s.options.Configure(server, &s.Listeners); err != nil {
		return err
	}
	at := path.Clean("/" + s.upstream.base.Path)
	if at == "/" || s.options.upstream.kubeconfig != "" {
		return cli.Usagef(
			"without --resource, --upstream must be the URL of a collection, such as http://127.0.0.1:8081/flags")
	}
	resource := watchserver.Resource{Version: "v1", Name: path.Base(at)}
	source := s.openRelay(relaySpec{
		name: at, resource: resource, history: s.options.history.Retention(),
	}).Relay
	e := watchserver.Endpoint{Source: source, SharedCompression: server.SharedCompression, Resource: resource}
	server.Limits.Stored = append(server.Limits.Stored, source)
	server.Access.Authenticator = a.Authenticator()
	if authorize := a.Authorizer(); authorize != nil {
		e.Authorize = func(ctx context.Context, user watchserver.User) error {
			if user.Name == "" {
				user = kubeapi.Anonymous()
			}
			return authorize(ctx, user, kubeapi.Attributes{Verb: "get", Path: at})
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc(at, func(w http.ResponseWriter, r *http.Request) {
		server.Serve(w, r, e)
	})
	addProbes(mux, s.ready)
	s.paths = []string{at}
	s.WatchServer, s.Drain, s.Handler = server, server.Drain, mux
	return nil
}

// A readOnlyBackend is a store.Backend that reads from a relay and refuses writes.
type readOnlyBackend struct{ *relay.Relay }

var _ store.Backend = readOnlyBackend{}

// Commit implements [store.Backend].
func (readOnlyBackend) Commit(context.Context, store.Change) (*listwatch.Object, error) {
	return nil, &listwatch.Error{
		Code: listwatch.Unsupported, Status: http.StatusMethodNotAllowed, Reason: "MethodNotAllowed",
		Message: "a relay is read-only; write to its upstream",
	}
}
