package listen

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/httpbody"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
	"github.com/listwatch/listwatch/watchserver/echo"
)

// An endpointPlan describes an endpoint that is not open yet.
type endpointPlan struct {
	flag, addr string
	handler    http.Handler
	tls        *tls.Config // nil for clear text
	access     endpointAccess
}

// ListenEarly opens the endpoint of --metrics-addr and serves it while the server starts, so that
// probes can distinguish a start that takes long from a server that is gone. Until Serve is called,
// /readyz fails and says how far the start is. The caller must call Close, also after an error.
func (o *Options) ListenEarly(l *Listeners) error {
	if o.metricsAddr == "" {
		return nil
	}
	e, err := o.open(nil, l, endpointPlan{
		"--metrics-addr", o.metricsAddr, l.metricsHandler(), nil, endpointAccess{metrics: true},
	})
	if err != nil {
		return err
	}
	e.early = make(chan error, 1)
	go func() { e.early <- e.serve() }()
	l.Endpoints = append(l.Endpoints, e)
	return nil
}

// Listen opens all endpoints except for that of ListenEarly. If it cannot open an endpoint, it
// closes those that are already open.
func (o *Options) Listen(a *Auth, f *Listeners) (err error) {
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	// handler serves the API. It is set last, because the CORS origins that it allows include the
	// URL of --debug-addr, which is known only after that endpoint listens.
	var handler http.Handler
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) })
	plans, err := o.plan(a, f, api)
	if err != nil {
		return err
	}
	origins := slices.Clone(o.allowedOrigins)
	early := len(f.Endpoints)
	for _, p := range plans {
		e, err := o.open(a, f, p)
		if err != nil {
			return err
		}
		f.Endpoints = append(f.Endpoints, e)
		if p.access.debug {
			origins = append(origins, e.url)
		}
	}
	f.Endpoints = slices.Concat(f.Endpoints[early:], f.Endpoints[:early]) // the API first
	handler = watchserver.CORS(f.admit(), origins)
	// Write the file last: if an address is in use, the file may belong to the server that uses it.
	return a.writeCertificate()
}

// plan returns the endpoints that the flags request. The endpoints of the API serve api.
func (o *Options) plan(a *Auth, f *Listeners, api http.Handler) (plans []endpointPlan, err error) {
	switch {
	case o.addr == "" && o.tlsAddr == "":
		return nil, cli.Usagef("no address to listen on: set --addr or --tls-addr")
	case o.tlsAddr == "" && o.tls != tlsOptions{}:
		return nil, cli.Usagef("--tls-cert, --tls-key, --tls-self-signed and --tls-ca-out require --tls-addr")
	}
	if o.addr != "" {
		access := endpointAccess{needsCredentials: a.RequiresCredentials(false), tokens: a.acceptsTokens()}
		plans = append(plans, endpointPlan{"--addr", o.addr, api, nil, access})
	}
	if o.tlsAddr != "" {
		config, err := a.listenTLS(&f.Files)
		if err != nil {
			return nil, err
		}
		access := endpointAccess{
			needsCredentials: a.RequiresCredentials(true), tokens: a.acceptsTokens(), certificates: a.cas != nil,
			selfSigned: o.tls.selfSigned, caFile: o.tls.caOut,
		}
		plans = append(plans, endpointPlan{"--tls-addr", o.tlsAddr, a.closeDistrusted(api), config, access})
	}
	if o.debugAddr != "" {
		plans = append(
			plans, endpointPlan{
				"--debug-addr", o.debugAddr, apihttp.OwnPagesOnly(f.Debug), nil, endpointAccess{debug: true},
			})
	}
	return plans, nil
}

// open opens the endpoint that p describes.
func (o *Options) open(a *Auth, f *Listeners, p endpointPlan) (*Endpoint, error) {
	l, err := openListener(p.flag, p.addr, func(addr string) error {
		// Metrics contain no names of users or objects, so they need no credentials on any address.
		return a.checkAddress(p.flag, addr, p.access.needsCredentials || p.access.metrics)
	})
	if err != nil {
		return nil, err
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && tcp.IP.IsLoopback() && !p.access.needsCredentials &&
		(p.access.debug || !o.insecure) {
		p.handler = requireLocalHost(p.handler)
	}
	if !p.access.debug && !p.access.metrics {
		limited := &transport.LimitedListener{Listener: l, Max: o.limits.maxConnections(), Refused: func() {
			f.Metrics.ConnectionRefused()
			f.Log.Debug("connection refused", "limit", "connections", "on", p.addr)
		}}
		f.Metrics.AddListener(func() (open, limit int64) { return limited.Open(), limited.Max })
		l = limited
	}
	e := newEndpoint(l, p, f.Log)
	e.server.IdleTimeout = o.limits.idleTimeout
	h2.Configure(e.server, h2.Config{WriteTimeout: o.limits.writeTimeout, ExtendedConnect: o.webSocketOverHTTP2})
	return e, nil
}

// admit returns l.Handler behind the server's gate, which requires no credentials here. It also
// serves the path that the doctor command requests. If l.Ungated is set, it returns l.Handler.
func (l *Listeners) admit() http.Handler {
	if l.Ungated {
		return l.Handler
	}
	answer := &echo.Handler{Server: l.WatchServer}
	gate := l.WatchServer.Gate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == echo.Path {
			answer.ServeHTTP(w, r)
			return
		}
		l.Handler.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gate.ServeHTTP(w, apihttp.WithoutCredentials(r))
	})
}

func newEndpoint(l net.Listener, p endpointPlan, log *slog.Logger) *Endpoint {
	e := &Endpoint{listener: l, access: p.access, server: &http.Server{
		Handler: withGuard(p.handler), TLSConfig: p.tls, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
	scheme := "http"
	if p.tls != nil {
		scheme = "https"
	}
	e.url = scheme + "://" + localAddress(l.Addr())
	return e
}

// withGuard calls [httpbody.Guard] before next, which may respond in front of the gate, or has
// none.
func withGuard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpbody.Guard(w, r)
		next.ServeHTTP(w, r)
	})
}

// localAddress returns a as text. If a has an unspecified IP, such as 0.0.0.0, the text has
// 127.0.0.1 instead.
func localAddress(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
}
