//go:build !race

package apiserver

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/interop/internal/etcdtest"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// shutdownGrace limits the time until the watches end when a server shuts down. Without this limit,
// the server would wait until the clients end the watches.
const shutdownGrace = 5 * time.Second

// startTimeout limits the time until the server is ready.
const startTimeout = 5 * time.Minute

// A Server is a Kubernetes API server for custom resources, over TLS. It has one user, who may do
// everything. Objects can be created in any namespace, because the server does not manage
// namespaces.
type Server struct {
	// URL has the form https://127.0.0.1:PORT.
	URL string
	// Token is the bearer token of the user.
	Token string
	// CA is the certificate that signed the server's certificate, in PEM.
	CA []byte
	// Etcd is the URL of the server's etcd.
	Etcd string

	certificates string // the directory with the server's certificate
	shutdown     func()
}

// Options configure StartWith. The zero value is ready to use.
type Options struct {
	// Etcd is the URL of an etcd for the server's data. If empty, the server has one of its own.
	Etcd string
	// Configure configures the http.Server that serves the API server's handler. If nil, the API
	// server creates and configures one itself.
	Configure func(*http.Server)
	// Users are further users, by token. Authorize says what they may do.
	Users map[string]user.Info
	// Authorize reports whether a further user may make a request. If nil, they may do everything.
	Authorize func(authorizer.Attributes) bool
	// Replaces is a Server that has been shut down. If it is not nil, the new Server has its
	// address, its certificate and its etcd.
	Replaces *Server
}

// Config returns a configuration of client-go for s, with rate limits that are too high to
// slow down a test.
func (s *Server) Config() *rest.Config {
	return &rest.Config{
		Host: s.URL, BearerToken: s.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.CA}, QPS: 10000, Burst: 10000,
	}
}

// Start starts a Server that is stopped at the end of the test, and returns when it is ready.
func Start(t testing.TB) *Server {
	t.Helper()
	return StartWith(t, Options{})
}

// StartWith is like Start, with options.
func StartWith(t testing.TB, opts Options) *Server {
	t.Helper()
	s := &Server{Token: token}
	address := "127.0.0.1:0"
	if old := opts.Replaces; old != nil {
		opts.Etcd, s.certificates, address = old.Etcd, old.certificates, strings.TrimPrefix(old.URL, "https://")
	}
	if opts.Etcd == "" {
		opts.Etcd = etcdtest.Start(t, nil).URL
	}
	if s.certificates == "" {
		s.certificates = t.TempDir()
	}
	s.Etcd = opts.Etcd
	o := options.NewCustomResourceDefinitionsServerOptions(nil, nil)
	o.RecommendedOptions.Etcd.StorageConfig.Transport.ServerList = []string{s.Etcd}
	secure := o.RecommendedOptions.SecureServing
	var err error
	if secure.Listener, err = ports.Listen(address); err != nil {
		t.Fatal(err)
	}
	s.URL = "https://" + secure.Listener.Addr().String()
	secure.ServerCert.CertDirectory = s.certificates
	config, err := configure(o, opts)
	if err != nil {
		t.Fatal(err)
	}
	// A self-signed certificate is its own CA.
	if s.CA, err = os.ReadFile(filepath.Join(secure.ServerCert.CertDirectory,
		secure.ServerCert.PairName+".crt")); err != nil {
		t.Fatal(err)
	}
	s.run(t, config, opts.Configure)
	s.awaitReady(t)
	return s
}

// Shutdown shuts the server down as kube-apiserver does after SIGTERM, and returns when it has
// ended. Only the first call has an effect. At the end of its test, a Server is shut down
// automatically.
func (s *Server) Shutdown() { s.shutdown() }

// configure converts options to a configuration, without the features that need a kube-apiserver:
// delegated authentication and authorization, admission webhooks, and priority and fairness.
func configure(o *options.CustomResourceDefinitionsServerOptions, opts Options) (*apiserver.Config, error) {
	generic := genericserver.NewRecommendedConfig(apiserver.Codecs)
	if err := o.Complete(); err != nil {
		return nil, err
	}
	secure := o.RecommendedOptions.SecureServing
	if err := secure.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, err
	}
	o.APIEnablement = genericoptions.NewAPIEnablementOptions()
	for _, apply := range []func() error{
		func() error { return o.ServerRunOptions.ApplyTo(&generic.Config) },
		func() error { return o.RecommendedOptions.Etcd.ApplyTo(&generic.Config) },
		func() error { return secure.ApplyToConfig(&generic.Config) },
		func() error {
			return o.APIEnablement.ApplyTo(&generic.Config,
				apiserver.DefaultAPIResourceConfigSource(), apiserver.Scheme)
		},
	} {
		if err := apply(); err != nil {
			return nil, err
		}
	}
	admit(&generic.Config, opts)
	generic.ShutdownWatchTerminationGracePeriod = shutdownGrace
	namer := openapi.NewDefinitionNamer(apiserver.Scheme, scheme.Scheme)
	generic.OpenAPIConfig = genericserver.DefaultOpenAPIConfig(generatedopenapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config = genericserver.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, namer)
	return &apiserver.Config{GenericConfig: generic, ExtraConfig: apiserver.ExtraConfig{
		CRDRESTOptionsGetter: options.NewCRDRESTOptionsGetter(*o.RecommendedOptions.Etcd, nil,
			generic.StorageObjectCountTracker),
	}}, nil
}

// admit configures c to allow the user of [Server.Token] everything, and the users of opts what its
// Authorize allows. Like kube-apiserver, the server then accepts tokens in the header and in a
// WebSocket subprotocol, and reviews users and rights.
func admit(c *genericserver.Config, opts Options) {
	users := map[string]*user.DefaultInfo{
		token: {Name: "tester", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}},
	}
	for token, u := range opts.Users {
		users[token] = &user.DefaultInfo{Name: u.GetName(), Groups: append(u.GetGroups(), user.AllAuthenticated)}
	}
	tokens := authenticator.Token(tokenfile.New(users))
	c.Authentication.Authenticator = union.New(bearertoken.New(tokens), websocket.NewProtocolAuthenticator(tokens))
	c.Authorization.Authorizer = authorizer.AuthorizerFunc(
		func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			privileged := slices.Contains(a.GetUser().GetGroups(), user.SystemPrivilegedGroup)
			if privileged || !a.IsResourceRequest() || opts.Authorize == nil || opts.Authorize(a) {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionDeny, "the test does not allow it", nil
		})
	build, rights := c.BuildHandlerChainFunc, c.Authorization.Authorizer
	c.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	c.BuildHandlerChainFunc = func(api http.Handler, all *genericserver.Config) http.Handler {
		return withAggregator(build(api, all), c.AggregatedDiscoveryGroupManager, tokens, rights)
	}
}

// run runs the server until it is shut down.
func (s *Server) run(t testing.TB, c *apiserver.Config, configure func(*http.Server)) {
	t.Helper()
	server, err := c.Complete().New(genericserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	prepared, stopServing := server.GenericAPIServer.PrepareRun(), func() {}
	if configure != nil {
		if stopServing, err = serve(server.GenericAPIServer, configure); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- prepared.RunWithContext(ctx) }()
	s.shutdown = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("API server: %v", err)
		}
		stopServing()
	})
	t.Cleanup(s.shutdown)
}

// awaitReady waits until the server reports that it is ready.
func (s *Server) awaitReady(t testing.TB) {
	t.Helper()
	client, err := rest.UnversionedRESTClientFor(unversioned(s.Config()))
	if err != nil {
		t.Fatal(err)
	}
	var last error
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, startTimeout, true,
		func(ctx context.Context) (bool, error) {
			last = client.Get().AbsPath("/readyz").Do(ctx).Error()
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("the API server is not ready: %v: %v", err, last)
	}
}

// unversioned configures c for requests to paths outside the API groups, and returns c.
func unversioned(c *rest.Config) *rest.Config {
	c.GroupVersion, c.NegotiatedSerializer = &v1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	return c
}
