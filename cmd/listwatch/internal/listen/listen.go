package listen

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"

	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/config"
	"github.com/listwatch/listwatch/internal/apihttp"
	"github.com/listwatch/listwatch/internal/httpbody"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
	"github.com/listwatch/listwatch/watchserver"
	"github.com/listwatch/listwatch/watchserver/echo"
)

// Options contains the flags that configure the listeners of serve and relay.
type Options struct {
	// Config reads the flags from a file. The command must apply it before it uses a flag.
	Config config.Options

	addr, tlsAddr, debugAddr string
	metricsAddr, auditLog    string
	tls                      tlsOptions
	tokenFile, policyFile    string
	oidc                     oidcOptions
	insecure, noCompression  bool
	webSocketOverHTTP2       bool
	allowedOrigins           []string
	verbose                  bool
	limits                   limitOptions
}

// AddFlags adds the flags to f. addr is the default of --addr. debug is an endpoint that the help
// text of --debug-addr mentions, such as "GET /debug/relays".
func (o *Options) AddFlags(f *pflag.FlagSet, addr, debug string) {
	o.Config.AddFlags(f)
	f.StringVar(&o.addr, "addr", addr,
		"`address` to listen on without TLS; if empty, none; systemd:NAME is the socket of that name of systemd")
	f.StringVar(&o.tlsAddr, "tls-addr", "", "`address` to listen on with TLS, or systemd:NAME; if empty, none")
	f.StringVar(&o.tls.cert, "tls-cert", "",
		"PEM `file` with the server's certificate and its intermediate certificates")
	f.StringVar(&o.tls.key, "tls-key", "", "PEM `file` with the key of --tls-cert")
	f.BoolVar(&o.tls.selfSigned, "tls-self-signed", false,
		"create a certificate for this host, 127.0.0.1 and ::1 at the start")
	f.StringVar(&o.tls.caOut, "tls-ca-out", "",
		"`file` to write the certificate of --tls-self-signed to, for clients to trust")
	f.StringVar(&o.tls.clientCA, "client-ca", "",
		"PEM `file` with the CAs of client certificates; CN is the user, O the groups; applies to https only")
	f.StringVar(&o.tokenFile, "token-file", "",
		"`file` with one bearer token per line: token,user,uid,\"group1,group2\"")
	o.oidc.addFlags(f)
	f.StringVar(&o.policyFile, "authorization-policy", "",
		"`file` with a policy in Kubernetes' ABAC format, which must allow every request; if empty, all users may do everything")
	f.BoolVar(&o.insecure, "insecure", false, "allow addresses beyond loopback without credentials")
	f.StringArrayVar(&o.allowedOrigins, "allow-origin", nil,
		"additional `origin` whose pages may use the server, such as http://127.0.0.1:* (repeatable)")
	f.BoolVar(&o.noCompression, "no-compression", false,
		"never compress responses; use it if objects contain secrets next to text from other users")
	f.BoolVar(&o.webSocketOverHTTP2, "websocket-over-http2", false,
		"permit WebSocket over HTTP/2 (RFC 8441): browsers then open all WebSockets of an origin on one connection")
	f.StringVar(&o.debugAddr, "debug-addr", "",
		"`address` to serve GET /metrics, /debug/pprof/, GET /debug/watches and "+debug+" on, without credentials")
	f.StringVar(&o.metricsAddr, "metrics-addr", "",
		"`address` to serve GET /metrics, /healthz, /livez and /readyz on, without credentials; if empty, none")
	f.StringVar(&o.auditLog, "audit-log", "", "`file` to append a line of JSON to for each write; if empty, none")
	o.limits.addFlags(f)
	f.BoolVarP(&o.verbose, "verbose", "v", false, "log every watch and every refused request")
}

// An endpointPlan describes an endpoint that is not open yet.
type endpointPlan struct {
	flag, addr string
	handler    http.Handler
	tls        *tls.Config // nil for clear text
	access     endpointAccess
}

// ListenEarly opens the endpoint of --metrics-addr and serves it while the server starts, so that
// probes can distinguish a slow start from a server that is down. Until Serve is called, /readyz
// fails and reports the progress of the start. The caller must call Close, also after an error.
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
	handler = watchserver.CORS(f.Handler, origins)
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

// Gate returns a handler that passes requests on to next through the gate of l.WatchServer, which
// requires no credentials here. It also serves the path that the doctor command requests.
func (l *Listeners) Gate(next http.Handler) http.Handler {
	answer := &echo.Handler{Server: l.WatchServer}
	gate := l.WatchServer.Gate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == echo.Path {
			answer.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gate.ServeHTTP(w, apihttp.WithoutCredentials(r))
	})
}

// withGuard calls [httpbody.Guard] before next, because next may respond before the gate, or
// without a gate.
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
