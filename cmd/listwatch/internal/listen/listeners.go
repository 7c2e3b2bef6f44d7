package listen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
	"github.com/spf13/pflag"
)

// listenOptions are the flags about what listens: those that serve and relay share.
type Options struct {
	addr, tlsAddr, debugAddr string
	tls                      tlsOptions
	tokenFile                string
	insecure, noCompression  bool
	allowedOrigins           []string
	verbose                  bool
}

// register adds the flags; debug says what there is to see beside profiles and watches.
func (o *Options) AddFlags(f *pflag.FlagSet, addr, debug string) {
	f.StringVar(&o.addr, "addr", addr, "where to listen in clear text; empty: nowhere")
	f.StringVar(&o.tlsAddr, "tls-addr", "", "where to listen with TLS; empty: nowhere")
	f.StringVar(&o.tls.cert, "tls-cert", "", "file with the server's certificate, and those between it and its CA, in PEM")
	f.StringVar(&o.tls.key, "tls-key", "", "file with the key of --tls-cert, in PEM")
	f.BoolVar(&o.tls.selfSigned, "tls-self-signed", false, "make a certificate for this host, 127.0.0.1 and ::1 at the start")
	f.StringVar(&o.tls.caOut, "tls-ca-out", "", "file to write the certificate of --tls-self-signed to, for clients to trust")
	f.StringVar(&o.tls.clientCA, "client-ca", "", "file with the CAs of client certificates, in PEM: CN is the user, O the groups; https asks for them")
	f.StringVar(&o.tokenFile, "token-file", "", `file with bearer tokens, a line each: token,user,uid,"group1,group2"`)
	f.BoolVar(&o.insecure, "insecure", false, "listen beyond loopback without credentials")
	f.StringArrayVar(&o.allowedOrigins, "allow-origin", nil, "origin whose pages may use the server beside its own, as in http://127.0.0.1:*; repeatable")
	f.BoolVar(&o.noCompression, "no-compression", false, "compress nothing, whatever clients can decompress: where objects hold secrets beside text of others")
	f.StringVar(&o.debugAddr, "debug-addr", "", "where to serve /debug/pprof/, GET /debug/watches and "+debug+", without credentials")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "log every watch and every refusal")
}

func (o *Options) Logger(logs io.Writer) *slog.Logger {
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level}))
}

// configure makes s serve lists and watches as the flags say.
func (o *Options) Configure(s *watchserver.Server, log *slog.Logger) error {
	if err := transport.CheckOrigins(o.allowedOrigins); err != nil {
		return cli.UsageError(err)
	}
	s.AllowOrigins, s.NoCompression, s.Log, s.Trace = o.allowedOrigins, o.noCompression, log, logTrace(log)
	return nil
}

func logTrace(log *slog.Logger) *watchserver.Trace {
	return &watchserver.Trace{
		Refused: func(r *http.Request, err error) {
			log.Debug("refused", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr, "error", err)
		},
		Opened: func(w watchserver.Watch) {
			log.Debug("watch opened", "id", w.ID, "from", w.Client, "over", w.Transport, "as", w.MediaType, "compression", w.Compression, "url", w.URL)
		},
		Closed: func(w watchserver.Watch, err error) {
			log.Debug("watch closed", "id", w.ID, "events", w.Events, "bytes", w.Bytes, "error", err)
		},
	}
}

// A front is what clients meet: endpoints that serve one handler.
type Listeners struct {
	Log         *slog.Logger
	WatchServer *watchserver.Server         // has all watches
	Drain       func(context.Context) error // ends them
	Handler     http.Handler
	Debug       http.Handler
	Endpoints   []*Endpoint
}

// shutdownTime is how long watches and requests have to come to their end after a signal.
const shutdownTimeout = 10 * time.Second

// serve serves all endpoints until ctx ends, and then lets every watch end cleanly; or until one of them fails. What goes on beside, with a
// context that ends when serving does, is waited for.
func (f *Listeners) Serve(ctx context.Context, beside ...func(context.Context)) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	failed := make(chan error, len(f.Endpoints))
	for _, e := range f.Endpoints {
		wg.Go(func() {
			if err := e.serve(); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve %s: %w", e.url, err)
			}
		})
	}
	for _, run := range beside {
		wg.Go(func() { run(ctx) })
	}
	var err error
	select {
	case <-ctx.Done():
		f.Log.Info("shutting down: ending all watches", "watches", len(f.WatchServer.Watches()))
	case err = <-failed:
	}
	f.shutDown()
	return err
}

func (f *Listeners) shutDown() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := f.Drain(ctx); err != nil {
		f.Log.Warn("some watches took too long to end and were cut off", "after", shutdownTimeout)
	}
	for _, e := range f.Endpoints {
		if err := e.server.Shutdown(ctx); err != nil {
			f.Log.Warn("some requests took too long to end and were cut off", "on", e.url)
			_ = e.server.Close() // there is nobody left to tell
		}
	}
}
