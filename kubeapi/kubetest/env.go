package kubetest

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/listwatch/listwatch/internal/memnet"
	"github.com/listwatch/listwatch/kubeapi/kubetest/internal/admission"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// An Env is a Kubernetes API for one test. It is safe for concurrent use, and independent of all
// other Envs, so that tests can run in parallel.
type Env struct {
	// Immutable after construction.
	t        testing.TB
	api      *api
	faults   *Faults
	server   *http.Server
	listener *memnet.Listener
	activity activity
	// kubeconfig returns the path of the kubeconfig file. The first call writes it.
	kubeconfig func() string

	stopped atomic.Bool
	serving sync.WaitGroup // the goroutines that accept connections
}

// New starts an Env that is stopped at the end of the test. It has the namespaces default,
// kube-node-lease, kube-public and kube-system. New fails the test if a definition is invalid.
//
// In a bubble of testing/synctest, call New within the bubble.
func New(t testing.TB, o Options) *Env {
	t.Helper()
	e, err := newEnv(t, o)
	if err != nil {
		t.Fatal("kubetest:", err)
	}
	return e
}

// newEnv returns an Env that the end of t stops.
func newEnv(t testing.TB, o Options) (*Env, error) {
	faults := new(Faults)
	api, err := newAPI(o, faults)
	if err != nil {
		return nil, err
	}
	e := &Env{t: t, api: api, faults: faults, listener: memnet.Listen()}
	loops := &loopDetector{t: t}
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !api.serveAction(w, r) && !api.authority.serveReview(w, r) {
			admission.Handler(api).ServeHTTP(w, r)
		}
	})
	handler = faults.handler(api.authority.identified(handler))
	e.server = &http.Server{Handler: loops.handler(e.activity.handler(handler))}
	e.kubeconfig = sync.OnceValue(e.listen)
	t.Cleanup(e.stop)
	e.watchEnd()
	if err := api.serveAll(); err != nil {
		return nil, err
	}
	e.serve(e.listener)
	return e, nil
}

// serve accepts the connections of l until the Env stops.
func (e *Env) serve(l net.Listener) {
	e.serving.Go(func() { _ = e.server.Serve(l) }) // returns when stop closes the server
}

func (e *Env) stop() {
	defer e.stopped.Store(true)
	e.api.stop() // ends the watches, some of which own their connections
	_ = e.server.Close()
	e.serving.Wait()
	if e.t.Failed() {
		e.faults.logInjected(e.t)
	}
}

// Config returns a configuration of client-go without rate limits. Its clients reach the Env over
// connections in memory. It is a new copy for each call. The user is the admin, who may do
// everything; see [Env.ConfigFor] for other users.
func (e *Env) Config() *rest.Config {
	return &rest.Config{Host: "http://" + e.listener.Addr().String(), Dial: e.listener.Dial, QPS: -1}
}

// ConfigFor returns a configuration like [Env.Config], for a user with the given name and groups.
// The roles and bindings in the Env decide what the user may do. Every user has the group
// system:authenticated. The user "system:serviceaccount:NAMESPACE:NAME" also has the groups of
// service accounts, unless other groups are given. The service account need not exist.
func (e *Env) ConfigFor(user string, groups ...string) *rest.Config {
	c := e.Config()
	c.BearerToken = e.api.authority.add(token{user: newUser(user, groups)})
	return c
}

// WebhookMux returns the mux with the handlers of webhooks. The webhook server of a manager of
// controller-runtime registers them there, and opens no port, if it has these options:
//
//	webhook.NewServer(webhook.Options{Port: -1, WebhookMux: env.WebhookMux()})
//
// The Env calls each webhook that is a service with a request for the path of the service, within
// this process. The patterns of the mux may contain the host, such as webhook.system.svc. If the
// mux has no handler, the call fails, and the webhook's failurePolicy applies. A webhook that has a
// URL is called there.
func (e *Env) WebhookMux() *http.ServeMux { return e.api.chain.Webhooks.Mux }

// Faults returns the switch for the faults of the Env.
func (e *Env) Faults() *Faults { return e.faults }

// KubeconfigFile returns the path of a kubeconfig file for programs such as kubectl. The first call
// writes it, and makes the Env also listen at a port of 127.0.0.1. KubeconfigFile cannot be used
// in a bubble of testing/synctest.
func (e *Env) KubeconfigFile() string {
	e.t.Helper()
	return e.kubeconfig()
}

// listen serves the Env at a port, and returns the path of a kubeconfig file that names it.
func (e *Env) listen() string {
	e.t.Helper()
	var c net.ListenConfig
	l, err := c.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		e.t.Fatal(err)
	}
	e.serve(l)
	path := filepath.Join(e.t.TempDir(), "kubeconfig")
	if err := writeKubeconfig(path, "http://"+l.Addr().String()); err != nil {
		e.t.Fatal(err)
	}
	return path
}

// writeKubeconfig writes a kubeconfig file for the cluster at url.
func writeKubeconfig(path, url string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["kubetest"] = &clientcmdapi.Cluster{Server: url}
	config.Contexts["kubetest"] = &clientcmdapi.Context{Cluster: "kubetest", Namespace: "default"}
	config.CurrentContext = "kubetest"
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}
