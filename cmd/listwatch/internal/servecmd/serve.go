package servecmd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/listen"
	"github.com/listwatch/listwatch/js"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/crd"
	"github.com/listwatch/listwatch/observe/metrics"
	"github.com/listwatch/listwatch/store/bolt"
	"github.com/listwatch/listwatch/watchserver"
	"github.com/spf13/cobra"
)

// serveOptions contains the flags of serve.
type serveOptions struct {
	listen.Options
	resources []string
	crds      []string
	store     storeOptions
	demo      bool
	maxBody   cli.ByteSize
	shared    watchserver.SharedCompression
}

// New returns the command listwatch serve.
func New() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve collections at the paths of Kubernetes' API",
		Long: `Serve collections at the paths of Kubernetes' API over HTTP/1.1, HTTP/2 and
WebSocket. The server prints commands to try.

Clients write objects with POST, PUT, PATCH and DELETE, and watch them with
GET and ?watch=true. kubectl --server works, too; see docs/kubernetes.md. Web
pages import /js/listwatch.js; see docs/browsers.md.

Objects are in memory and lost when the server ends. With --data FILE they are
in a file, together with their history: after a restart or a crash, watches
resume where they were. With --etcd URL they are in etcd, which several servers
can share.

On a loopback address, anonymous clients have full access unless --token-file
is set. --client-ca applies to https only. On other addresses the server
refuses to start without credentials, unless --insecure is set.

--config reads all flags from a YAML file, and --print-config prints one.
Certificates, tokens and the policy are read again when they change, and on
SIGHUP.

The first SIGINT or SIGTERM ends all watches cleanly. The second kills the
server.`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if done, err := o.Config.Apply(cmd.Flags(), cmd.OutOrStdout()); done || err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	o.AddFlags(f, "127.0.0.1:8080", "POST /debug/compact")
	f.StringArrayVar(&o.resources, "resource", nil, "additional `resource`, such as widgets.v1.demo.example.com=Widget; append ,cluster if it has no namespaces (repeatable)")
	f.TextVar(&o.shared, "shared-compression", watchserver.ShareNever,
		"`watches` to compress with the history of their events: never, namespace (watches of one namespace) or always; "+
			"it saves most of the bytes, but can disclose objects to users who write to the same watch; never for Secrets")
	f.StringArrayVar(&o.crds, "crd", nil, "`file` with CustomResourceDefinitions in YAML or JSON, each of which declares a resource (repeatable)")
	o.store.register(f)
	o.maxBody = kubeapi.DefaultMaxBodyBytes
	f.Var(&o.maxBody, "max-body-bytes", "maximum `size` of an object or patch; a negative value means no limit")
	f.BoolVar(&o.demo, "demo", false, "change some objects continuously")
	return cmd
}

// A server holds the listeners and the store of the command serve.
type server struct {
	listen.Listeners
	db  database
	api *kubeapi.Handler
}

func (o *serveOptions) run(ctx context.Context, out, logs io.Writer) error {
	s := &server{Listeners: listen.Listeners{Log: o.Logger(logs), Metrics: metrics.New()}}
	s.HandleSignals()
	var err error
	if s.db, err = o.store.open(ctx, &s.Listeners); err != nil {
		return startError(ctx, err)
	}
	return errors.Join(s.run(ctx, o, out), s.db.Close())
}

func (s *server) run(ctx context.Context, o *serveOptions, out io.Writer) error {
	if err := s.prepare(ctx, o); err != nil {
		return startError(ctx, err)
	}
	for _, e := range s.Endpoints {
		e.PrintQuickstart(out, cli.CommandName())
	}
	var background []func(context.Context)
	if db, ok := s.db.(*bolt.DB); ok {
		background = append(background, func(ctx context.Context) { logReadiness(ctx, db, s.Log) })
	}
	background = append(background, s.limitHistory)
	if o.demo {
		background = append(background, func(ctx context.Context) { s.runDemo(ctx, time.Second) })
	}
	return s.Serve(ctx, background...)
}

// prepare performs everything that can fail before the server starts.
func (s *server) prepare(ctx context.Context, o *serveOptions) error {
	s.api = &kubeapi.Handler{Ready: s.ready, MaxBodyBytes: int64(o.maxBody)}
	if err := o.Configure(&s.api.Server, &s.Listeners); err != nil {
		return err
	}
	access, err := o.ReadAuth(&s.Files)
	if err != nil {
		return err
	}
	s.api.Authenticate, s.api.Authorize, s.api.RulesFor = access.Authenticator(), access.Authorizer(), access.Rules()
	if err := s.addResources(ctx, o); err != nil {
		return err
	}
	s.WatchServer, s.Drain, s.Handler = &s.api.Server, s.api.Drain, withClient(s.api)
	s.Debug = s.debugHandler()
	return o.Listen(access, &s.Listeners)
}

// withClient adds the JavaScript client to api, so that a page needs no build to use the server. It
// uses no http.ServeMux, which would redirect requests whose path has an empty segment. Requests
// below /js/ with other methods than GET and HEAD also go to api, because api refuses such requests
// without waiting for their bodies.
func withClient(api http.Handler) http.Handler {
	const prefix = "/js/"
	client := http.StripPrefix(prefix, js.Handler())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, prefix) && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			client.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// ready returns an error if the store reports that it cannot be read.
func (s *server) ready() error {
	if db, ok := s.db.(interface{ Ready(context.Context) error }); ok {
		return db.Ready(context.Background()) // Ready has its own timeout
	}
	return nil
}

// readResources returns the resources that the flags --resource and --crd declare.
func (s *server) readResources(o *serveOptions) ([]kubeapi.Resource, error) {
	var resources []kubeapi.Resource
	for _, text := range o.resources {
		r, err := kubeapi.ParseResource(text)
		if err != nil {
			return nil, cli.UsageError(err)
		}
		resources = append(resources, r)
	}
	for _, file := range o.crds {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, cli.Usagef("--crd: %w", err)
		}
		definitions, err := crd.Parse(text)
		if err != nil {
			return nil, cli.Usagef("--crd %s: %w", file, err)
		}
		for _, d := range definitions {
			for _, part := range d.Ignored {
				s.Log.Warn("a part of a CustomResourceDefinition has no effect", "file", file, "resource", d.QualifiedName(), "part", part)
			}
			resources = append(resources, d.Resource)
		}
	}
	return resources, nil
}

// addResources opens the collections of all resources and serves them.
func (s *server) addResources(ctx context.Context, o *serveOptions) error {
	more, err := s.readResources(o)
	if err != nil {
		return err
	}
	for _, r := range append(kubeapi.DefaultResources(), more...) {
		if o.shared.Check(listwatch.Description{APIVersion: r.APIVersion(), Kind: r.Kind}) == nil {
			r.SharedCompression = o.shared
		}
		c, err := openCollection(ctx, s.db, o.store.withQuota(r.CollectionSpec()))
		if err == nil {
			err = s.api.Add(r, c)
			s.Metrics.AddCollection(watchserver.Resource{Group: r.Group, Version: r.Version, Name: r.Plural}, c)
		} else {
			err = withExitCode(err)
		}
		if errors.Is(err, listwatch.AlreadyExists) {
			return cli.Usagef("%s: already declared or built in; remove its --resource or --crd", r.QualifiedName())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *server) debugHandler() http.Handler {
	mux := s.NewDebugMux()
	mux.HandleFunc("POST "+backupPath, s.serveBackup)
	mux.HandleFunc("POST /debug/compact", func(w http.ResponseWriter, r *http.Request) {
		s.db.Compact()
		watchserver.WriteJSON(w, r, http.StatusOK, map[string]string{"compactedTo": s.db.Version().String()})
	})
	return mux
}
