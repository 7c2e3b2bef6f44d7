//go:build !race

package field

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/interop/internal/kubeapiserver"
	"github.com/listwatch/listwatch/interop/internal/program"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// apiServer is the environment variable with the path of the kube-apiserver.
const apiServer = "LISTWATCH_KUBE_APISERVER"

// waitTimeout limits the time of whatever a test waits for. Only failing tests wait that long.
const waitTimeout = 2 * time.Minute

// An endpoint is an API server as clients see it: the kube-apiserver itself or a relay of it.
type endpoint struct {
	name   string
	config *rest.Config
	client *http.Client
	home   string // the home directory of kubectl
}

// A cluster is a kube-apiserver and a relay of it.
type cluster struct {
	direct, relayed *endpoint
	server          *kubeapiserver.Server
	relay           *program.Process
}

// startCluster starts a kube-apiserver and a relay with the default flags. startEtcd returns the
// URL of the etcd. startCluster skips the test if there is no kube-apiserver.
func startCluster(t *testing.T, startEtcd func(testing.TB) (url string)) *cluster {
	t.Helper()
	path := os.Getenv(apiServer)
	if path == "" {
		t.Skip(apiServer + " names no program; use make field")
	}
	s := kubeapiserver.StartWith(t, path, kubeapiserver.Options{Etcd: startEtcd(t)})
	c := &cluster{direct: newEndpoint(t, "kube-apiserver", s.URL, s.Token), server: s}
	c.startRelay(t)
	return c
}

// startRelay starts a relay with the default flags.
func (c *cluster) startRelay(t *testing.T) {
	t.Helper()
	c.relay = program.Start(t, program.Build(t), "relay", "--cluster", "--kubeconfig", c.server.Kubeconfig,
		"--addr", "", "--tls-addr", "127.0.0.1:0", "--tls-self-signed")
	c.relayed = newEndpoint(t, "relay", c.relay.URL(), c.server.Token)
}

func newEndpoint(t *testing.T, name, address, token string) *endpoint {
	t.Helper()
	c := &rest.Config{
		Host: address, BearerToken: token, QPS: 10000, Burst: 10000,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		t.Fatal(err)
	}
	return &endpoint{name: name, config: c, client: client, home: t.TempDir()}
}

// eventually calls done repeatedly until it returns true. It fails the test if done returns an
// error.
func eventually(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, waitTimeout, true, done); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// A response is what an endpoint returned, and the time that it took.
type response struct {
	code  int
	body  []byte
	took  time.Duration
	proto string // such as HTTP/2.0
}

// send sends a request with a JSON body, which may be empty.
func (e *endpoint) send(t *testing.T, method, path string, query url.Values, contentType, body string) response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, e.config.Host+path+"?"+query.Encode(), strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return response{}
	}
	r.Header.Set("Accept", "application/json")
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	begin := time.Now()
	answer, err := e.client.Do(r)
	if err != nil {
		t.Errorf("%s: %s %s: %v", e.name, method, r.URL, err)
		return response{}
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Errorf("%s: %s %s: %v", e.name, method, r.URL, err)
		return response{}
	}
	return response{answer.StatusCode, data, time.Since(begin), answer.Proto}
}

func (e *endpoint) get(t *testing.T, path string, query url.Values) response {
	t.Helper()
	return e.send(t, http.MethodGet, path, query, "", "")
}

// An object is a decoded object, an event of a watch, or any other JSON object.
type object = map[string]any

func decode(t *testing.T, data []byte) (o object) {
	t.Helper()
	if err := json.Unmarshal(data, &o); err != nil {
		t.Errorf("%v: %q", err, data)
	}
	return o
}
