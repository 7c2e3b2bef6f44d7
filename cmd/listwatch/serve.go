package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
	"github.com/spf13/cobra"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	addr, tlsAddr, debugAddr string
	tls                      tlsOptions
	tokenFile                string
	insecure, noCompression  bool
	origins, resources       []string
	store                    storeOptions
	demo, verbose            bool
}

func newServe() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve collections at the paths of Kubernetes",
		Long: `Serve collections at the paths of Kubernetes, over HTTP/1.1, HTTP/2 and WebSocket, and print commands to try.

Objects come in by POST, PUT, PATCH and DELETE, and every GET with ?watch=true follows them. kubectl --server works with them: docs/kubernetes.md.
They are in memory, and nothing is kept when the server ends; with --data FILE they are in a file, history included, and watches go on where they
were when the server is there again, however it ended.

On loopback anybody may do everything, unless --token-file is given; with --client-ca, only https asks for certificates. Elsewhere
the server refuses to listen without credentials, unless --insecure is given. The first SIGINT or SIGTERM ends all watches cleanly,
the second ends the server at once.`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", "127.0.0.1:8080", "where to listen in clear text; empty: nowhere")
	f.StringVar(&o.tlsAddr, "tls-addr", "", "where to listen with TLS; empty: nowhere")
	f.StringVar(&o.tls.cert, "tls-cert", "", "file with the server's certificate, and those between it and its CA, in PEM")
	f.StringVar(&o.tls.key, "tls-key", "", "file with the key of --tls-cert, in PEM")
	f.BoolVar(&o.tls.selfSigned, "tls-self-signed", false, "make a certificate for this host, 127.0.0.1 and ::1 at the start")
	f.StringVar(&o.tls.caOut, "tls-ca-out", "", "file to write the certificate of --tls-self-signed to, for clients to trust")
	f.StringVar(&o.tls.clientCA, "client-ca", "", "file with the CAs of client certificates, in PEM: CN is the user, O the groups; https asks for them")
	f.StringVar(&o.tokenFile, "token-file", "", `file with bearer tokens, a line each: token,user,uid,"group1,group2"`)
	f.BoolVar(&o.insecure, "insecure", false, "listen beyond loopback without credentials")
	f.StringArrayVar(&o.origins, "allow-origin", nil, "origin whose pages may use the server beside its own, as in http://127.0.0.1:*; repeatable")
	f.StringArrayVar(&o.resources, "resource", nil, "further resource, as in widgets.v1.demo.example.com=Widget, with ,cluster for one without namespaces; repeatable")
	f.BoolVar(&o.noCompression, "no-compression", false, "compress nothing, whatever clients can decompress: where objects hold secrets beside text of others")
	o.store.register(f)
	f.StringVar(&o.debugAddr, "debug-addr", "", "where to serve /debug/pprof/, GET /debug/watches and POST /debug/compact, without credentials")
	f.BoolVar(&o.demo, "demo", false, "keep changing some objects")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "log every watch and every refusal")
	return cmd
}

// A service is what serve runs.
type service struct {
	log  *slog.Logger
	db   database
	api  *kubeapi.Handler
	ends []*endpoint
}

func (o *serveOptions) run(ctx context.Context, out, logs io.Writer) error {
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	s := &service{
		log: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: level})),
	}
	var err error
	if s.db, err = o.store.open(); err != nil {
		return err
	}
	return errors.Join(s.run(ctx, o, out), s.db.Close())
}

func (s *service) run(ctx context.Context, o *serveOptions, out io.Writer) error {
	if err := s.prepare(o); err != nil {
		return err
	}
	for _, e := range s.ends {
		e.hints(out, commandName())
	}
	return s.serve(ctx, o.demo)
}

// prepare makes everything that can go wrong go wrong before anything is served.
func (s *service) prepare(o *serveOptions) error {
	if err := transport.CheckOrigins(o.origins); err != nil {
		return usageError{err}
	}
	access, err := o.readAccess()
	if err != nil {
		return err
	}
	s.api = &kubeapi.Handler{
		Authenticate: access.authenticator(),
		Server: watchserver.Server{
			AllowOrigins: o.origins, NoCompression: o.noCompression, Log: s.log, Trace: s.trace(),
		},
	}
	if err := s.addResources(o.resources); err != nil {
		return err
	}
	s.ends, err = o.listen(access, s)
	return err
}

func (s *service) addResources(more []string) error {
	resources := kubeapi.DefaultResources()
	for _, text := range more {
		r, err := kubeapi.ParseResource(text)
		if err != nil {
			return usageError{err}
		}
		resources = append(resources, r)
	}
	for _, r := range resources {
		c, err := s.db.Collection(r.Declare())
		if err == nil {
			err = s.api.Add(r, c)
		} else {
			err = dataError(err)
		}
		if errors.Is(err, listwatch.AlreadyExists) {
			return usagef("--resource: %s is declared twice, or is one of the defaults", r.QualifiedName())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *service) trace() *watchserver.Trace {
	return &watchserver.Trace{
		Refused: func(r *http.Request, err error) {
			s.log.Debug("refused", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr, "error", err)
		},
		Opened: func(w watchserver.Watch) {
			s.log.Debug("watch opened", "id", w.ID, "from", w.Client, "over", w.Transport, "as", w.MediaType, "compression", w.Compression, "url", w.URL)
		},
		Closed: func(w watchserver.Watch, err error) {
			s.log.Debug("watch closed", "id", w.ID, "events", w.Events, "bytes", w.Bytes, "error", err)
		},
	}
}

// shutdownTime is how long watches and requests have to come to their end after a signal.
const shutdownTime = 10 * time.Second

// serve serves all endpoints until ctx ends, and then lets every watch end cleanly; or until one of them fails.
func (s *service) serve(ctx context.Context, demo bool) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	failed := make(chan error, len(s.ends))
	for _, e := range s.ends {
		wg.Go(func() {
			if err := e.serve(); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve %s: %w", e.url, err)
			}
		})
	}
	if demo {
		wg.Go(func() { s.runDemo(ctx, time.Second) })
	}
	var err error
	select {
	case <-ctx.Done():
		s.log.Info("shutting down: ending all watches", "watches", len(s.api.Server.Watches()))
	case err = <-failed:
	}
	s.shutDown()
	return err
}

func (s *service) shutDown() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := s.api.Drain(ctx); err != nil {
		s.log.Warn("some watches took too long to end and were cut off", "after", shutdownTime)
	}
	for _, e := range s.ends {
		if err := e.server.Shutdown(ctx); err != nil {
			s.log.Warn("some requests took too long to end and were cut off", "on", e.url)
			_ = e.server.Close() // there is nobody left to tell
		}
	}
}
