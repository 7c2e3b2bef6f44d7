package adapters_test

import (
	"net"
	"net/http"
	"testing"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/adapters"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/runner"
	"github.com/listwatch/listwatch/kubeapi"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/h2"
)

// serve starts a server of the resources that every cluster has and returns its URL.
func serve(t *testing.T, wrap func(http.Handler) http.Handler) string {
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
	h2.Configure(server, transport.Options{})
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	return "http://" + l.Addr().String()
}

// judge fails t for every outcome that is bad, and returns how many passed.
func judge(t *testing.T, target conformance.Target, o conformance.Options) (passed int) {
	t.Helper()
	o.Subject = harness.Server
	r, err := conformance.Execute(t.Context(), target, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range r.Outcomes {
		switch {
		case out.Verdict == runner.Pass:
			passed++
		case out.Verdict.IsFailure() || out.Verdict == runner.Warn:
			t.Errorf("%s: %s: %q %s", out.Name(), out.Verdict, out.Messages, out.Reason)
		}
	}
	return passed
}

func TestOurServerPassesAsACluster(t *testing.T) {
	base := serve(t, nil)
	c, err := adapters.Kube(t.Context(), base, "", adapters.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The crowds of group conc and the large objects are for servers that somebody doubts.
	o := conformance.Options{Skip: []string{"conc", "large", "order", "limit", "timeout", "slow", "drop", "*/*/h2", "*/*/ws-nhooyr"}}
	if n := judge(t, c.Target, o); n < 80 {
		t.Errorf("only %d runs passed", n)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestOurServerPassesByItsURL(t *testing.T) {
	target, err := adapters.URL(t.Context(), serve(t, nil)+"/api/v1/pods", adapters.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := judge(t, target, conformance.Options{Skip: []string{"timeout"}}); n < 40 {
		t.Errorf("only %d runs passed", n)
	}
}

// wantsOrigin refuses WebSockets without an Origin, as kube-apiserver does.
func wantsOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" && r.Header.Get("Origin") == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func TestWebSocketsHaveAnOriginWhereTheServerWantsOne(t *testing.T) {
	at := serve(t, wantsOrigin)
	cluster, err := adapters.Kube(t.Context(), at, "configmaps", adapters.Options{})
	if err != nil {
		t.Fatal(err)
	}
	byURL, err := adapters.URL(t.Context(), at+"/api/v1/configmaps", adapters.Options{})
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
			if o.ID == "cors/ws-no-origin" { // is asked without one all the same
				want = runner.Warn
			}
			if o.Verdict != want {
				t.Errorf("%s: got %s, %q %s; want %s", o.Name(), o.Verdict, o.Messages, o.Reason, want)
			}
		}
		if len(r.Outcomes) != 4 {
			t.Errorf("%d runs, want two cases on two ways", len(r.Outcomes))
		}
	}
	if err := cluster.Close(); err != nil {
		t.Error(err)
	}
}
