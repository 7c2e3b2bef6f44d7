package relaycmd

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/listen"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/remote"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/persist"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
)

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
		err = api.Add(r, store.NewReadOnly(r.CollectionSpec(), source.Relay))
		if errors.Is(err, listwatch.AlreadyExists) {
			return cli.Usagef("--resource %s: given twice", text)
		}
		if err != nil {
			return err
		}
		s.paths = append(s.paths, r.Path(""))
	}
	s.WatchServer, s.Drain = &api.Server, api.Drain
	s.Handler = s.Gate(api)
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
	s.WatchServer, s.Drain = server, server.Drain
	s.Handler = s.Gate(mux)
	return nil
}

func (s *relayServer) openRelay(spec relaySpec) *namedRelay {
	remote, o := s.upstream.newRemote(spec.below), s.options
	remote.Trace, remote.Framings = spec.client, spec.framings
	var file persist.File
	if o.persist != "" {
		file.Path = filepath.Join(o.persist, url.PathEscape(spec.name)+".copy")
	}
	r := &namedRelay{name: spec.name, encoding: spec.encoding, Relay: relay.Open(remote, relay.Options{
		History: spec.history, BackfillVersions: o.backfillVersions, Fields: spec.fields, FieldRules: spec.rules,
		Trace:         s.Metrics.RelayTrace(spec.resource, spec.encoding, s.trace(spec)),
		CheckInterval: checkInterval(o.maxBehind), Persist: file, ProbeWait: spec.probeWait,
	})}
	remove := s.Metrics.AddRelay(spec.resource, spec.encoding, r.Relay)
	r.close = func() {
		remove()
		r.Close()
		remote.Close()
	}
	s.relays.add(r)
	return r
}

// A namedRelay is the relay of one collection.
type namedRelay struct {
	name, encoding string
	*relay.Relay
	close func()
}

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
