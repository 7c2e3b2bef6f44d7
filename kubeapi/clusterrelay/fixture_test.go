package clusterrelay

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/internal/testhttp"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/watchserver"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// relayToken is the token of the relay itself, which may do everything.
const relayToken = "of-the-relay"

const (
	podsPath    = "/api/v1/namespaces/a/pods"
	secretsPath = "/api/v1/namespaces/a/secrets"
	widgetsPath = "/apis/demo.example.com/v1/namespaces/a/widgets"
)

// A cluster is an API server that reviews users and rights, with a relay in front of it.
type cluster struct {
	*testing.T
	api  *kubeapi.Handler
	pods listwatch.Source // the pods of the API server
	// protobuf serves the pods of the API server in Protobuf.
	protobuf *watchserver.Server
	direct   string // the URL of the API server
	relayed  string // the URL of the relay
	handler  *Handler
	servers  map[string]*testhttp.Server // by address
	client   http.RoundTripper
	tls      *tls.Config // of clients; nil for clear text

	mu sync.Mutex
	// Guarded by mu.
	users    map[string]string                   // by token
	allowed  func(watchserver.User, access) bool // nil if every user may do everything
	outage   bool                                // reviews fail
	down     error                               // of connections to the API server
	requests map[string]int                      // the number of requests, by user, method and path
	refuse   string                              // a resource that the relay must not read
	others   http.Handler                        // serves upgrades
	seen     http.Header                         // the header of the last request
	warning  string                              // a Warning for the readers of pods
	isOld    bool                                // the API server has no Protobuf
	refused  []string                            // the errors of the relay, with the request
}

// withCluster calls f with a cluster that has pods, secrets, widgets, leases and zones, in a bubble
// of synctest.
func withCluster(t *testing.T, o Options, f func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(startCluster(t, o)) })
}

// recheckInterval is the interval at which the relay of a cluster reviews open watches.
const recheckInterval = time.Minute

func startCluster(t *testing.T, o Options) *cluster {
	t.Helper()
	resources := kubeapi.DefaultResources()[:1]
	c := &cluster{
		T: t, requests: make(map[string]int), servers: make(map[string]*testhttp.Server),
		protobuf: &watchserver.Server{Framings: streams},
		users:    map[string]string{relayToken: "relay", "of-ann": "ann", "of-bob": "bob"},
	}
	for _, text := range []string{
		"secrets.v1=Secret", "widgets.v1.demo.example.com=Widget", "leases.v1.coordination.k8s.io=Lease",
		"zones.v1.demo.example.com=Zone,cluster",
	} {
		r, err := kubeapi.ParseResource(text)
		if err != nil {
			t.Fatal(err)
		}
		resources = append(resources, r)
	}
	c.api = newAPI(c, resources...)
	if o.Certificates != nil {
		c.tls = new(tls.Config)
	}
	c.direct = c.serve(c, frontCA)
	base, err := url.Parse(c.direct)
	if err != nil {
		t.Fatal(err)
	}
	o.URL, o.Network = base, transport.Network{Dial: c.dial, TLS: c.tls}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	own := o.Network.HTTPTransport(protocols)
	t.Cleanup(own.CloseIdleConnections)
	c.client = own
	server := new(watchserver.Server)
	server.Trace = &watchserver.Trace{Refused: func(_ context.Context, r watchserver.Request, err error) {
		c.change(func() { c.refused = append(c.refused, r.Method+" "+r.Path+": "+listwatch.AsError(err).Message) })
	}}
	o.Header = func(context.Context, bool) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer " + relayToken}}, nil
	}
	o.Server, o.Recheck, o.Log = server, recheckInterval, slog.New(slog.DiscardHandler)
	if c.handler, err = New(o); err != nil {
		t.Fatal(err)
	}
	c.relayed = c.serve(c.handler, clientCA)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.handler.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		_ = server.Drain(t.Context())
	})
	return c
}

// newAPI returns the API of a server with the given resources and the users of c.
func newAPI(c *cluster, resources ...kubeapi.Resource) *kubeapi.Handler {
	c.Helper()
	api, db := new(kubeapi.Handler), memory.Open(memory.Options{})
	for _, r := range resources {
		spec := r.CollectionSpec()
		if r.Plural == "leases" {
			spec.TTL = func([]byte) time.Duration { return leaseTTL }
		}
		objects, err := db.Collection(spec)
		if r.Plural == "pods" {
			c.pods = objects
		}
		if err == nil {
			err = api.Add(r, objects)
		}
		if err != nil {
			c.Fatal(err)
		}
	}
	api.Server.Access.Authenticator = c.authenticate
	api.Authorize = func(_ context.Context, u kubeapi.User, a kubeapi.Attributes) error {
		if !c.allows(watchserver.User{Name: u.Name, Groups: u.Groups}, access{
			verb: a.Verb, group: a.Resource.Group, version: a.Resource.Version, resource: a.Resource.Plural,
			namespace: a.Namespace, name: a.Name,
		}) {
			return &listwatch.Error{Code: listwatch.Forbidden, Message: "refused by the API server"}
		}
		return nil
	}
	return api
}

// leaseTTL is the TTL of the leases of the API server.
const leaseTTL = time.Minute

// serve serves h until the test ends, and returns the URL. Over TLS, it verifies client
// certificates by ca.
func (c *cluster) serve(h http.Handler, ca func() *authority) string {
	o := testhttp.Options{TLS: c.tls != nil, ConfigureTLS: func(config *tls.Config) {
		config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, ca().pool
	}}
	s := testhttp.Start(c, h, o)
	if c.tls != nil {
		c.tls.RootCAs = s.ClientTLS.RootCAs
	}
	at := s.URL("")
	_, address, _ := strings.Cut(at, "://")
	c.servers[address] = s
	return at
}

func (c *cluster) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	down := c.down
	c.mu.Unlock()
	if down != nil && strings.HasSuffix(c.direct, "://"+address) {
		return nil, down
	}
	return c.servers[address].Dial(ctx, network, address)
}

// ServeHTTP is the API server.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u, err := c.authenticate(r)
	c.mu.Lock()
	c.requests[u.Name+" "+r.Method+" "+r.URL.Path]++
	c.seen = r.Header
	others, outage, api, isOld := c.others, c.outage, c.api, c.isOld
	if c.warning != "" && strings.HasPrefix(r.URL.Path, "/api/v1/pods") {
		w.Header().Set("Warning", c.warning)
	}
	c.mu.Unlock()
	switch {
	case err == nil && u.Name == "relay" && strings.HasSuffix(r.URL.Path, "reviews"):
		if outage {
			http.Error(w, "reviews do not work", http.StatusInternalServerError)
			return
		}
		c.review(w, r)
	case r.Header.Get("Upgrade") != "":
		others.ServeHTTP(w, r)
	case r.Method == http.MethodGet && strings.HasPrefix(r.Header.Get("Accept"), protobufType) &&
		strings.HasSuffix(r.URL.Path, "/pods"):
		if isOld {
			http.Error(w, "no Protobuf", http.StatusNotAcceptable)
			return
		}
		c.serveProtobuf(w, r)
	default:
		api.ServeHTTP(w, r)
	}
}

// authenticate is a [watchserver.Authenticator].
func (c *cluster) authenticate(r *http.Request) (u watchserver.User, err error) {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 { // the front proxy
		return watchserver.User{Name: r.Header.Get("X-Remote-User"), Groups: r.Header["X-Remote-Group"]}, nil
	}
	token, err := watchserver.BearerToken(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	u.Name = c.users[token]
	if err == nil && u.Name == "" {
		err = &listwatch.Error{Code: listwatch.Unauthorized, Message: "refused by the API server"}
	}
	return u, err
}

func (c *cluster) allows(u watchserver.User, a access) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u.Name == "relay" {
		return a.resource != c.refuse
	}
	return c.allowed == nil || c.allowed(u, a)
}

// review responds to a TokenReview or a SubjectAccessReview.
func (c *cluster) review(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Spec struct {
			Token              string `json:"token"`
			User               string `json:"user"`
			Groups             []string
			ResourceAttributes struct {
				Verb, Group, Version, Resource, Namespace, Name string
			} `json:"resourceAttributes"`
		} `json:"spec"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	status := map[string]any{}
	if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
		c.mu.Lock()
		name := c.users[review.Spec.Token]
		c.mu.Unlock()
		status = map[string]any{
			"authenticated": name != "",
			"user":          map[string]any{"username": name, "extra": map[string]any{"k": []string{"v"}}},
		}
	} else {
		a := review.Spec.ResourceAttributes
		status["allowed"] = c.allows(watchserver.User{Name: review.Spec.User, Groups: review.Spec.Groups}, access{
			verb: a.Verb, group: a.Group, version: a.Version, resource: a.Resource, namespace: a.Namespace,
			name: a.Name,
		})
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status}) // the client has disconnected
}

// count returns how often the API server has received a request.
func (c *cluster) count(request string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[request]
}

// change calls f, which may change what mu guards.
func (c *cluster) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// A response is a response with its whole body.
type response struct {
	code   int
	header http.Header
	body   string
}

// send sends a request with a token, unless it is empty, and header fields as pairs.
func (c *cluster) send(token, method, url, body string, header ...string) response {
	c.Helper()
	if token != "" {
		header = append(slices.Clip(header), "Authorization", "Bearer "+token)
	}
	if body != "" && !slices.Contains(header, "Content-Type") {
		header = append(slices.Clip(header), "Content-Type", "application/json")
	}
	answer := testkit.Do(c, c.client, method, url, body, header...)
	return response{answer.StatusCode, answer.Header, testkit.Body(c, answer)}
}

// get sends a GET through the relay and requires status 200.
func (c *cluster) get(token, path string, header ...string) string {
	c.Helper()
	r := c.send(token, "GET", c.relayed+path, "", header...)
	if r.code != http.StatusOK {
		c.Fatalf("GET %s: got %d %s, want 200", path, r.code, r.body)
	}
	return r.body
}

// warm starts the cache of path, and waits for its state.
func (c *cluster) warm(path string) {
	c.Helper()
	c.get("of-ann", path+"?resourceVersion=0")
}

// create creates an object at the API server.
func (c *cluster) create(path, object string) {
	c.Helper()
	if r := c.send(relayToken, "POST", c.direct+path, object); r.code != http.StatusCreated {
		c.Fatalf("POST %s: got %d %s, want 201", path, r.code, r.body)
	}
}

func named(name string) string { return `{"metadata":{"name":"` + name + `"}}` }
