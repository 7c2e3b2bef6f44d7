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
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/js"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/kubeapi/crd"
	"github.com/listwatch/listwatch/observe/metrics"
	"github.com/listwatch/listwatch/store/bolt"
	"github.com/listwatch/listwatch/store/postgres"
	"github.com/listwatch/listwatch/watchserver"
)

// A server holds the listeners, the database and the API handler of the serve command.
type server struct {
	listen.Listeners
	db  database
	api *kubeapi.Handler
	// tables follows the tables of --postgres. It is nil without --postgres, and equal to db if the
	// objects of all resources are in PostgreSQL, too.
	tables *postgres.DB
}

func (s *server) run(ctx context.Context, o *serveOptions, out io.Writer) error {
	if err := s.prepare(ctx, o); err != nil {
		return startError(ctx, err)
	}
	samples := s.api.Resources()
	if tables := len(o.postgres.tables); tables > 0 {
		samples = samples[len(samples)-tables:] // the tables are the last resources
		samples[0].ReadOnly = true              // the suggested write does not fit a table
	} else {
		samples = samples[:1]
	}
	for _, e := range s.Endpoints {
		e.PrintQuickstart(out, cli.CommandName(), samples...)
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
	s.api.Server.Access.Authenticator = access.Authenticator()
	s.api.Authorize, s.api.RulesFor = access.Authorizer(), access.Rules()
	if err := s.addResources(ctx, o); err != nil {
		return err
	}
	if err = o.postgres.addTables(s.tables, &s.Listeners, s.api); err != nil {
		return err
	}
	s.WatchServer, s.Drain = &s.api.Server, s.api.Drain
	s.Handler = s.Gate(withClient(s.api))
	s.Debug = s.debugHandler()
	return o.Listen(access, &s.Listeners)
}

// ready returns an error if the store reports that it cannot be read.
func (s *server) ready() error {
	if s.tables != nil {
		if err := s.tables.Ready(); err != nil {
			return err
		}
	}
	if db, ok := s.db.(interface{ Ready(context.Context) error }); ok {
		return db.Ready(context.Background()) // Ready has its own timeout
	}
	return nil
}

// addResources opens the collections of all resources and serves them.
func (s *server) addResources(ctx context.Context, o *serveOptions) error {
	resources, err := s.readResources(o)
	if err != nil {
		return err
	}
	definitions, err := s.readDefinitions(o.crds)
	if err != nil {
		return err
	}
	ttls, err := parseTTLs(o.ttls)
	if err != nil {
		return err
	}
	var all []crd.Definition
	for _, r := range append(kubeapi.DefaultResources(), resources...) {
		all = append(all, crd.Definition{Resource: r, Versions: []crd.Version{{Resource: r, Served: true}}})
	}
	for _, d := range append(all, definitions...) {
		name := d.QualifiedName()
		if err := s.addResource(ctx, o, d, ttls[name]); err != nil {
			return err
		}
		delete(ttls, name)
	}
	for name := range ttls {
		return cli.Usagef("--ttl: there is no resource %q; names look like events or leases.coordination.k8s.io", name)
	}
	return nil
}

// addResource opens the collection of a resource and serves it in all versions. ttl is the TTL of
// its objects, or nil.
func (s *server) addResource(
	ctx context.Context, o *serveOptions, d crd.Definition, ttl func(data []byte) time.Duration,
) error {
	for i := range d.Versions {
		r := &d.Versions[i].Resource
		if o.shared.Check(listwatch.Description{APIVersion: r.APIVersion(), Kind: r.Kind}) == nil {
			r.SharedCompression = o.shared
		}
	}
	spec := o.store.withQuota(d.CollectionSpec())
	spec.TTL = ttl
	c, err := openCollection(ctx, s.db, spec)
	if err == nil {
		err = checkExpiry(c)
	}
	if err == nil {
		err = d.AddTo(s.api, c)
		s.Metrics.AddCollection(watchserver.Resource{Group: d.Group, Version: d.Version, Name: d.Plural}, c)
	} else {
		err = withExitCode(err)
	}
	if errors.Is(err, listwatch.AlreadyExists) {
		return cli.Usagef("%s: already declared or built in; remove its --resource or --crd", d.QualifiedName())
	}
	return err
}

// readResources returns the resources that the flag --resource declares.
func (s *server) readResources(o *serveOptions) ([]kubeapi.Resource, error) {
	var resources []kubeapi.Resource
	for _, text := range o.resources {
		r, err := kubeapi.ParseResource(text)
		if err != nil {
			return nil, cli.UsageError(err)
		}
		resources = append(resources, r)
	}
	return resources, nil
}

// readDefinitions returns the CustomResourceDefinitions in files and directories.
func (s *server) readDefinitions(paths []string) (definitions []crd.Definition, err error) {
	for _, path := range paths {
		files, err := crd.Files(path)
		if err != nil {
			return nil, cli.Usagef("--crd: %w", err)
		}
		found := 0
		for _, file := range files {
			more, err := s.readDefinitionsIn(file)
			if err != nil {
				return nil, err
			}
			definitions = append(definitions, more...)
			found += len(more)
		}
		if found == 0 {
			return nil, cli.Usagef("--crd %s: it contains no CustomResourceDefinition", path)
		}
	}
	return definitions, nil
}

func (s *server) readDefinitionsIn(file string) (definitions []crd.Definition, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, cli.Usagef("--crd: %w", err)
	}
	documents, err := crd.Documents(text, "CustomResourceDefinition")
	if err != nil {
		return nil, cli.Usagef("--crd %s: %w", file, err)
	}
	for _, document := range documents {
		d, err := crd.ParseJSON(document)
		if err != nil {
			return nil, cli.Usagef("--crd %s: %w", file, err)
		}
		for _, part := range d.Ignored {
			s.Log.Warn("a part of a CustomResourceDefinition has no effect", "file", file, "resource",
				d.QualifiedName(), "part", part)
		}
		definitions = append(definitions, d)
	}
	return definitions, nil
}

func (s *server) debugHandler() http.Handler {
	mux := s.NewDebugMux()
	mux.HandleFunc("POST "+backupPath, s.serveBackup)
	mux.HandleFunc("POST /debug/compact", func(w http.ResponseWriter, r *http.Request) {
		s.db.Compact()
		apihttp.WriteJSON(w, r, http.StatusOK, map[string]string{"compactedTo": s.db.Version().String()})
	})
	return mux
}

// every calls f at intervals until ctx ends. The first call is after one interval.
func every(ctx context.Context, interval time.Duration, f func()) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			f()
		}
	}
}

// serveOptions contains the flags of serve.
type serveOptions struct {
	listen.Options
	resources []string
	crds      []string
	ttls      []string
	store     storeOptions
	postgres  postgresOptions
	demo      bool
	maxBody   cli.ByteSize
	shared    watchserver.SharedCompression
}

func (o *serveOptions) run(ctx context.Context, out, logs io.Writer) error {
	s := &server{Listeners: listen.Listeners{Log: o.Logger(logs), Metrics: metrics.New()}}
	s.HandleSignals()
	defer s.Close()
	err := o.ListenEarly(&s.Listeners)
	if err != nil {
		return err
	}
	if err := o.openDatabases(ctx, s); err != nil {
		return startError(ctx, err)
	}
	err = s.run(ctx, o, out)
	if s.tables != nil {
		err = errors.Join(err, s.tables.Close())
	}
	return errors.Join(err, s.db.Close())
}

// openDatabases opens the store of all resources, and the tables.
func (o *serveOptions) openDatabases(ctx context.Context, s *server) (err error) {
	inPostgres := o.postgres.hasDocuments()
	if inPostgres && (o.store.data != "" || len(o.store.etcd.endpoints) > 0) {
		return cli.Usagef("set either --data, --etcd, or --postgres without --table")
	}
	if s.tables, err = o.postgres.open(ctx, &s.Listeners, o.store.history.Retention()); err != nil {
		return err
	}
	if s.db = s.tables; !inPostgres {
		s.db, err = o.store.open(ctx, &s.Listeners)
	}
	return err
}

// withClient adds the JavaScript client to api, so that a page needs no build to use the server. It
// does not use http.ServeMux, which would redirect requests whose path has an empty segment.
// Requests below /js/ with methods other than GET and HEAD also go to api, because api refuses such
// requests without waiting for their bodies.
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
