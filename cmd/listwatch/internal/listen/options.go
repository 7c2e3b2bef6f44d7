package listen

import (
	"net"
	"net/http"

	"github.com/spf13/pflag"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/config"
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

// An Endpoint is an address that the server listens on.
type Endpoint struct {
	url      string // for a client on this machine
	listener net.Listener
	server   *http.Server
	access   endpointAccess
	early    chan error // receives the result of serve if ListenEarly has opened the endpoint
}

// An endpointAccess describes how clients can access an endpoint.
type endpointAccess struct {
	debug, metrics   bool
	needsCredentials bool // otherwise anonymous access is allowed
	tokens           bool // tokens are accepted
	certificates     bool // client certificates are accepted
	selfSigned       bool
	caFile           string // file with the self-signed certificate, if it was written
}
