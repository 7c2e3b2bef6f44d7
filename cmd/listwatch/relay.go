package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
	"github.com/spf13/cobra"
)

// relayOptions are the flags of relay.
type relayOptions struct {
	listenOptions
	upstream     upstreamOptions
	resources    []string
	historyAge   time.Duration
	historyBytes byteSize
	lookback     int
	maxBehind    time.Duration
}

func newRelay() *cobra.Command {
	o := relayOptions{historyBytes: 256 << 20}
	cmd := &cobra.Command{
		Use:   "relay (--upstream URL | --kubeconfig FILE) [--resource NAME]...",
		Short: "Serve collections of another server to any number of watchers, by one watch each",
		Long: `Serve collections of another server to any number of watchers, by one watch each.

With --resource the upstream is a server of Kubernetes' API, a real one too, and each resource is served at its paths, read only; what is not
named is not there. Without, --upstream is the URL of one collection, which is served at the same path. Versions are those of the upstream: a
client may go on at any relay, or at the upstream. Reads of the newest state are as new as the upstream's; docs/relay.md says how.

/readyz says no until all state is here, and when it is further behind than --max-behind. Who may come in is said as for serve; the relay reads
with the credentials of --upstream-token-file, --upstream-cert or --kubeconfig, and whoever is let in sees what these may see.`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	o.upstream.register(f)
	f.StringArrayVar(&o.resources, "resource", nil, "resource to relay: pods, or in full as in widgets.v1.demo.example.com; with =Widget or =Widget,cluster the upstream isn't asked what it is; repeatable")
	f.IntVar(&o.lookback, "lookback", relay.DefaultBackfillVersions, "how many versions before the newest to begin with, where the upstream still has them, for clients of a relay before; 0: the default; negative: none")
	f.DurationVar(&o.historyAge, "history-age", 5*time.Minute, "how long a change can be watched from; zero: the default; negative: for ever")
	f.Var(&o.historyBytes, "history-bytes", "how much history each collection keeps at most; zero: the default; negative: without limit")
	f.DurationVar(&o.maxBehind, "max-behind", 150*time.Second, "how far behind the upstream /readyz still says yes; zero or negative: however far")
	o.register(f, "127.0.0.1:8082", "GET /debug/relays")
	return cmd
}

// A relayService is what relay runs.
type relayService struct {
	front
	options *relayOptions
	up      *upstreamAccess
	relays  []relayed
	paths   []string // to try
	release []func()
}

// relayed is one collection.
type relayed struct {
	name string
	*relay.Relay
}

func (o *relayOptions) run(ctx context.Context, out, logs io.Writer) error {
	s := &relayService{front: front{log: o.logger(logs)}, options: o}
	defer s.close()
	if err := s.prepare(ctx); err != nil {
		return err
	}
	for _, e := range s.ends {
		e.relayHints(out, commandName(), s.paths)
	}
	return s.serve(ctx)
}

// prepare makes everything that can go wrong at the start go wrong before anything is served.
func (s *relayService) prepare(ctx context.Context) error {
	o := s.options
	access, err := o.readAccess()
	if err != nil {
		return err
	}
	if s.up, err = o.upstream.access(); err != nil {
		return err
	}
	if len(o.resources) > 0 {
		err = s.relayResources(ctx, access)
	} else {
		err = s.relayCollection(access)
	}
	if err != nil {
		return err
	}
	debug := newDebug(s.server)
	debug.HandleFunc("GET /debug/relays", s.serveStatus)
	s.debug = debug
	return o.listen(access, &s.front)
}

// relayResources relays resources at the paths of Kubernetes.
func (s *relayService) relayResources(ctx context.Context, a *access) error {
	api := &kubeapi.Handler{Authenticate: a.authenticator(), Ready: s.ready}
	if err := s.options.configure(&api.Server, s.log); err != nil {
		return err
	}
	for _, text := range s.options.resources {
		r, err := s.up.resource(ctx, text)
		if err != nil {
			return s.options.upstream.renamed(withAdvice(err))
		}
		r.ReadOnly = true
		source := s.open(r.QualifiedName(), r.Path(""), r.Fields)
		err = api.Add(r, store.New(r.CollectionSpec(), readOnly{source}))
		if errors.Is(err, listwatch.AlreadyExists) {
			return usagef("--resource %s: it is there twice", text)
		}
		if err != nil {
			return err
		}
		s.paths = append(s.paths, r.Path(""))
	}
	s.server, s.drain, s.handler = &api.Server, api.Drain, api
	return nil
}

// relayCollection relays the collection whose URL the upstream's is.
func (s *relayService) relayCollection(a *access) error {
	server := new(watchserver.Server)
	if err := s.options.configure(server, s.log); err != nil {
		return err
	}
	at := path.Clean("/" + s.up.base.Path)
	if at == "/" || s.options.upstream.kubeconfig != "" {
		return usagef("without --resource, --upstream must be the URL of a collection, such as http://127.0.0.1:8081/flags")
	}
	server.Source = s.open(at, "", nil)
	mux := http.NewServeMux()
	mux.Handle(at, authenticated(a.authenticator(), server))
	mux.HandleFunc("GET /readyz", s.serveReady)
	for _, path := range []string{"GET /healthz", "GET /livez"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	}
	s.paths = []string{at}
	s.server, s.drain, s.handler = server, server.Drain, mux
	return nil
}

// open relays the collection at a path below the upstream.
func (s *relayService) open(name, below string, fields []string) *relay.Relay {
	remote := s.up.remote(below)
	o := s.options
	r := relay.Open(remote, relay.Options{
		HistoryAge: o.historyAge, HistoryBytes: int64(o.historyBytes), BackfillVersions: o.lookback, Fields: fields, Trace: s.traceOf(name),
		CheckInterval: checkEvery(o.maxBehind),
	})
	s.relays = append(s.relays, relayed{name, r})
	s.release = append(s.release, func() {
		r.Close()
		remote.Close()
	})
	return r
}

// checkEvery returns how often to find out how far behind a relay is, so that one where all is well is never found to be too far.
func checkEvery(maxBehind time.Duration) time.Duration {
	if maxBehind <= 0 {
		return relay.DefaultCheckInterval
	}
	return min(relay.DefaultCheckInterval, max(maxBehind/5, 100*time.Millisecond))
}

func (s *relayService) close() {
	for _, release := range s.release {
		release()
	}
}

func (s *relayService) traceOf(name string) *relay.Trace {
	log := s.log.With("relay", name)
	var again atomic.Bool
	return &relay.Trace{
		Replaced: func(v listwatch.Version, objects int) {
			if again.Swap(true) {
				log.Warn("the state is anew, and all watches have expired", "version", v, "objects", objects)
				return
			}
			log.Info("the state is here", "version", v, "objects", objects)
		},
		UpstreamLost: func(err error, wait time.Duration, again bool) {
			log.Warn("the watch of the upstream is lost", "error", oneLine(err), "tried again in", wait.Round(time.Millisecond), "from the state", again)
		},
		Checked: func(s relay.Health) {
			log.Debug("checked", "version", s.Version, "upstream", s.UpstreamVersion, "behind", s.Lag, "watchers", s.Watchers, "error", s.Err)
		},
	}
}

// readOnly is a relay as what keeps a collection.
type readOnly struct{ *relay.Relay }

var _ store.Backend = readOnly{}

// Commit implements [store.Backend].
func (readOnly) Commit(context.Context, store.Change) (*listwatch.Object, error) {
	return nil, &listwatch.Error{Code: listwatch.Unsupported, Status: http.StatusMethodNotAllowed, Reason: "MethodNotAllowed", Message: "a relay is read only"}
}

// authenticated lets only requests through that a knows; nil: all.
func authenticated(a kubeapi.Authenticator, next http.Handler) http.Handler {
	if a == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, err := a(r)
		if err == nil && user.Name == "" {
			err = errors.New("the request bears no credentials")
		}
		if err != nil {
			if listwatch.CodeOf(err) == listwatch.Unknown {
				err = &listwatch.Error{Code: listwatch.Unauthorized, Err: err}
			}
			watchserver.WriteError(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ready says why some relay is not fit to be asked.
func (s *relayService) ready() error {
	var why []error
	for _, r := range s.relays {
		switch status := r.Health(); {
		case !status.Ready && status.Err != nil:
			why = append(why, fmt.Errorf("%s: the state of the upstream is not here yet: %w", r.name, status.Err))
		case !status.Ready:
			why = append(why, fmt.Errorf("%s: the state of the upstream is not here yet", r.name))
		case s.options.maxBehind > 0 && status.Lag < 0:
			why = append(why, fmt.Errorf("%s: how far it is behind the upstream is not known", r.name))
		case s.options.maxBehind > 0 && status.Lag > s.options.maxBehind:
			why = append(why, fmt.Errorf("%s: it may be %v behind the upstream", r.name, status.Lag.Round(time.Second)))
		}
	}
	return errors.Join(why...)
}

func (s *relayService) serveReady(w http.ResponseWriter, _ *http.Request) {
	if err := s.ready(); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, err)
		return
	}
	fmt.Fprint(w, "ok")
}

// A relayStatus is a [relay.Status] as JSON. Durations are in seconds.
type relayStatus struct {
	Name         string   `json:"name"`
	Ready        bool     `json:"ready"`
	Following    bool     `json:"following"`
	Version      string   `json:"version"`
	Upstream     string   `json:"upstream"`
	Epoch        string   `json:"epoch,omitempty"`
	Behind       *float64 `json:"behindSeconds"` // null: not known
	Silent       *float64 `json:"silentSeconds"` // null: nothing has ever come
	Error        string   `json:"error,omitempty"`
	Objects      int      `json:"objects"`
	Watchers     int      `json:"watchers"`
	HistoryBytes int64    `json:"historyBytes"`
	Floor        string   `json:"floor"`
}

func (s *relayService) serveStatus(w http.ResponseWriter, r *http.Request) {
	all := make([]relayStatus, 0, len(s.relays))
	for _, relayed := range s.relays {
		s := relayed.Health()
		shown := relayStatus{
			Name: relayed.name, Ready: s.Ready, Following: s.Following, Version: s.Version.String(), Upstream: s.UpstreamVersion.String(), Epoch: s.Epoch,
			Objects: s.Objects, Watchers: s.Watchers, HistoryBytes: s.HistoryBytes, Floor: s.Floor.String(),
		}
		if s.Lag >= 0 {
			behind := s.Lag.Seconds()
			shown.Behind = &behind
		}
		if !s.LastHeard.IsZero() {
			silent := time.Since(s.LastHeard).Seconds()
			shown.Silent = &silent
		}
		if s.Err != nil {
			shown.Error = s.Err.Error()
		}
		all = append(all, shown)
	}
	watchserver.WriteJSON(w, r, http.StatusOK, map[string]any{"relays": all})
}

// relayHints prints what to try at e.
func (e *endpoint) relayHints(out io.Writer, command string, paths []string) {
	if e.about.debug {
		fmt.Fprintf(out, "%s shows the inside, without credentials:\n\n  curl %s/debug/relays\n  curl %s/debug/watches\n\n", e.url, e.url, e.url)
		return
	}
	fmt.Fprintf(out, "Relaying on %s over HTTP/1.1, HTTP/2 and WebSocket, %s. Try, in another terminal:\n\n", e.url, e.about.who())
	for _, at := range paths {
		fmt.Fprintf(out, "  curl%s -N \"%s%s?watch=true\"\n", e.about.curlFlags(), e.url, at)
		fmt.Fprintf(out, "  %s watch %s%s%s\n", command, e.url, at, e.about.clientFlags())
	}
	fmt.Fprintf(out, "  curl%s %s/readyz\n\n", e.about.curlFlags(), e.url)
}
