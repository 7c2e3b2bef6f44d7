package conformancecmd_test

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/adapters"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/runner"
	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport/h2"
)

// patient has a longer timeout than the default, because a busy machine must not make a test fail.
var patient = adapters.Options{Timeout: time.Minute}

// serve starts a server with the built-in resources and returns its URL.
func serve(t *testing.T, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	base, _ := serveUntil(t, wrap)
	return base
}

// serveUntil is like serve. It also returns a function that stops the server.
func serveUntil(t *testing.T, wrap func(http.Handler) http.Handler) (base string, stop func()) {
	t.Helper()
	db := memory.Open(memory.Options{})
	api := &kubeapi.Handler{}
	for _, r := range kubeapi.DefaultResources() {
		c, err := db.Collection(r.CollectionSpec())
		if err == nil {
			err = api.Add(r, c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var handler http.Handler = api
	if wrap != nil {
		handler = wrap(handler)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	h2.Configure(server, h2.Config{})
	go func() { _ = server.Serve(l) }()
	stop = func() { server.Close() }
	t.Cleanup(stop)
	return "http://" + l.Addr().String(), stop
}

// countPasses runs the server cases, fails t for each failure or warning, and returns the
// number of passes.
func countPasses(t *testing.T, target conformance.Target, o conformance.Options) int {
	t.Helper()
	o.Subject, o.Strict = harness.Server, true
	r, err := conformance.Execute(t.Context(), target, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.FailTest(t)
}

func TestKubernetesTargetPasses(t *testing.T) {
	if racetest.Enabled {
		t.Skip("slow: the target runs much of the suite")
	}
	base := serve(t, nil)
	c, err := adapters.Kube(t.Context(), base, "", patient)
	if err != nil {
		t.Fatal(err)
	}
	// The cases with many watchers and large objects are slow, and would show nothing new
	// about this module's server.
	o := conformance.Options{
		Skip: []string{"conc", "large", "order", "limit", "timeout", "slow", "drop", "*/*/h2", "*/*/ws-[gn][oh]*"},
	}
	if n := countPasses(t, c.Target, o); n < 80 {
		t.Errorf("only %d runs passed", n)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestURLTargetPasses(t *testing.T) {
	target, err := adapters.URL(t.Context(), serve(t, nil)+"/api/v1/pods", patient)
	if err != nil {
		t.Fatal(err)
	}
	// The cases about limits are slow, and would show nothing new about this module's server.
	if n := countPasses(t, target, conformance.Options{Skip: []string{"limit", "timeout"}}); n < 40 {
		t.Errorf("only %d runs passed", n)
	}
}

// requireOrigin refuses WebSockets without an Origin header, as kube-apiserver does.
func requireOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" && r.Header.Get("Origin") == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func TestRequiredOriginIsSent(t *testing.T) {
	at := serve(t, requireOrigin)
	cluster, err := adapters.Kube(t.Context(), at, "configmaps", patient)
	if err != nil {
		t.Fatal(err)
	}
	byURL, err := adapters.URL(t.Context(), at+"/api/v1/configmaps", patient)
	if err != nil {
		t.Fatal(err)
	}
	run := []string{"handshake/ws-accept", "cors/ws-no-origin"}
	for _, target := range []harness.Target{cluster.Target, byURL} {
		r, err := conformance.Execute(t.Context(), target, conformance.Options{Run: run}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range r.Outcomes {
			want := runner.Pass
			if o.ID == "cors/ws-no-origin" { // sends requests without an Origin header
				want = runner.Warn
			}
			if o.Verdict != want {
				t.Errorf("%s: got %s, %q %s; want %s", o.Name(), o.Verdict, o.Messages, o.Reason, want)
			}
		}
		if len(r.Outcomes) != 6 {
			t.Errorf("%d runs, want two cases in three variants", len(r.Outcomes))
		}
	}
	if err := cluster.Close(); err != nil {
		t.Error(err)
	}
}
