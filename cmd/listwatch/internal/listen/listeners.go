package listen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/reload"
	"github.com/listwatch/listwatch/observe/logs"
	"github.com/listwatch/listwatch/observe/metrics"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

// Logger returns a logger that writes to logs at the level that the flags select.
func (o *Options) Logger(logs io.Writer) *slog.Logger {
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level}))
}

// HandleSignals keeps the signals SIGPIPE and SIGHUP from killing the server, because the server
// may outlive its terminal or the process that reads its output. After SIGHUP, the server reads its
// files again.
func (l *Listeners) HandleSignals() {
	signal.Ignore(syscall.SIGPIPE)
	l.hangup = make(chan os.Signal, 1)
	signal.Notify(l.hangup, syscall.SIGHUP)
}

// Configure applies the flags to s. It also adds s to the metrics and the logs of f.
func (o *Options) Configure(s *watchserver.Server, f *Listeners) error {
	if err := transport.CheckOrigins(o.allowedOrigins); err != nil {
		return cli.UsageError(err)
	}
	s.Detach = true // no handler of this program needs to see the end of a watch
	s.Access.Origins, s.NoCompression, s.Log = o.allowedOrigins, o.noCompression, f.Log
	s.Trace = watchserver.JoinTraces(
		f.Metrics.Trace(), logs.Watches(f.Log, 0), logs.Failures(f.Log), logTrace(f.Log))
	if o.auditLog != "" {
		file, err := os.OpenFile(o.auditLog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("--audit-log: %w", err)
		}
		f.auditLog = file
		audit := slog.New(slog.NewJSONHandler(file, nil))
		s.Trace, f.Expired = watchserver.JoinTraces(s.Trace, logs.Audit(audit)), logs.Expired(audit)
	}
	f.Metrics.AddServer(s)
	f.shutdownTimeout = o.limits.shutdown
	return o.limits.configure(s)
}

func logTrace(log *slog.Logger) *watchserver.Trace {
	return &watchserver.Trace{
		Refused: func(_ context.Context, r watchserver.Request, err error) {
			log.Debug("refused", "method", r.Method, "path", r.Path, "from", r.RemoteAddr, "error", err)
		},
		Listed: func(_ context.Context, l watchserver.List) {
			log.Debug("list", "from", l.Client, "items", l.Items, "bytes", l.Bytes, "took", l.Took, "path", l.Path)
		},
		Opened: func(_ context.Context, w watchserver.Watch) {
			log.Debug("watch opened", "id", w.ID, "from", w.Client, "over", w.Transport, "as", w.MediaType,
				"compression", w.Compression, "path", w.Path)
		},
	}
}

// Listeners serve one handler on several endpoints.
type Listeners struct {
	Log         *slog.Logger
	Metrics     *metrics.Metrics
	WatchServer *watchserver.Server         // serves all watches
	Drain       func(context.Context) error // ends all watches
	// Handler serves the API, and lets requests enter the gate of WatchServer.
	Handler http.Handler
	// Probes serves the paths of health probes. If nil, Handler does.
	Probes    http.Handler
	Debug     http.Handler
	Endpoints []*Endpoint
	Files     reload.Files // read again when they change

	// Expired is the hook of the store that logs objects that have expired. Configure sets it if
	// there is an audit log.
	Expired  func(collection string, o *listwatch.Object)
	auditLog *os.File // nil if there is none; closed by Serve

	hangup          chan os.Signal // receives SIGHUP
	shutdownTimeout time.Duration  // how long watches and requests may take to end
	progress        progress
}

// Serve serves all endpoints until one fails or ctx ends. When ctx ends, it drains all
// watches. It also runs the background functions, cancels their context when serving ends,
// and waits for them.
func (l *Listeners) Serve(ctx context.Context, background ...func(context.Context)) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	l.progress.ready.Store(true)
	failed := make(chan error, len(l.Endpoints))
	for _, e := range l.Endpoints {
		wg.Go(func() {
			if err := e.wait(); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve %s: %w", e.url, err)
			}
		})
	}
	for _, run := range background {
		wg.Go(func() { run(ctx) })
	}
	wg.Go(func() { l.Files.Run(ctx, l.Log, l.hangup, l.recheck) })
	notifySystemd(l.Log, daemon.SdNotifyReady)
	var err error
	select {
	case <-ctx.Done():
		l.Log.Info("shutting down: ending all watches", "watches", len(l.WatchServer.Watches()))
	case err = <-failed:
	}
	notifySystemd(l.Log, daemon.SdNotifyStopping)
	l.shutDown()
	if l.auditLog != nil {
		err = errors.Join(err, l.auditLog.Close())
	}
	return err
}

// recheck ends the watches of users who have lost their credentials or rights.
func (l *Listeners) recheck() {
	if n := l.WatchServer.Recheck(); n > 0 {
		l.Log.Info("ended watches whose users are no longer allowed", "watches", n)
	}
}

func (l *Listeners) shutDown() {
	ctx, cancel := context.WithTimeout(context.Background(), l.shutdownTimeout)
	defer cancel()
	if err := l.Drain(ctx); err != nil {
		l.Log.Warn("some watches did not end in time and were closed", "after", l.shutdownTimeout)
	}
	for _, e := range l.Endpoints {
		if err := e.server.Shutdown(ctx); err != nil {
			l.Log.Warn("some requests did not end in time and were closed", "on", e.url)
			_ = e.server.Close() // there is no caller to return the error to
		}
	}
}

// Progress records that the start of the server has made progress. step describes the progress.
// /readyz responds with it until Serve is called, and systemd waits a minute longer.
func (l *Listeners) Progress(step string) { l.progress.record(l.Log, step) }

// metricsHandler serves the metrics and, through the handler of the API, the health probes.
func (l *Listeners) metricsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", l.Metrics.Handler())
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case !l.progress.ready.Load():
				l.progress.serveHealth(w, path)
			case l.Probes != nil:
				l.Probes.ServeHTTP(w, r)
			default:
				l.Handler.ServeHTTP(w, r)
			}
		})
	}
	return mux
}

// Close closes the endpoints. It has no effect after Serve.
func (l *Listeners) Close() {
	for _, e := range l.Endpoints {
		if e.early != nil {
			_ = e.server.Close()
		}
		_ = e.listener.Close()
	}
	l.Endpoints = nil
}

// A progress is the state of a server that is starting.
type progress struct {
	ready atomic.Bool
	step  atomic.Pointer[string] // the last step; nil before the first one
}

// startTimeout is the time that systemd grants a start after each step of its progress.
const startTimeout = "EXTEND_TIMEOUT_USEC=60000000"

func (p *progress) record(log *slog.Logger, step string) {
	if p.ready.Load() {
		return
	}
	p.step.Store(&step)
	notifySystemd(log, startTimeout+"\nSTATUS="+step)
}

// serveHealth responds to a probe of a server that is not ready.
func (p *progress) serveHealth(w http.ResponseWriter, path string) {
	if path != "/readyz" {
		fmt.Fprint(w, "ok")
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprint(w, "the server is starting")
	if step := p.step.Load(); step != nil {
		fmt.Fprint(w, ": ", *step)
	}
	fmt.Fprintln(w)
}
