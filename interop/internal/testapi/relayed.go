package testapi

import (
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"

	"github.com/listwatch/listwatch/internal/httpbody"
	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/interop/internal/program"
)

// relayedEnv is the environment variable with the path of the program listwatch. If it is set, each
// Server serves its clients through a process of `listwatch relay --cluster`.
const relayedEnv = "LISTWATCH_RELAYED"

// relayedToken is the token that the relay sees. The clients of a test need not send one.
const relayedToken = "of-a-client"

// relayed returns a handler that serves the API through a relay if relayedEnv is set, and
// otherwise the API itself.
func (s *Server) relayed() http.Handler {
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h, pattern := s.others.Handler(r); pattern != "" {
			h.ServeHTTP(w, r)
			return
		}
		s.API.ServeHTTP(w, r)
	})
	if os.Getenv(relayedEnv) == "" {
		return api
	}
	s.t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("POST /apis/authentication.k8s.io/v1/tokenreviews", allowEverything)
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", allowEverything)
	upstream := newEndpoint(ports.Address(s.t), mux, nil)
	if err := upstream.listen(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(upstream.stop)
	at := s.startRelay("http://" + upstream.addr)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return httpbody.Forward(&httputil.ReverseProxy{
		Transport:     &http.Transport{Protocols: protocols, DisableCompression: true, MaxIdleConnsPerHost: 100},
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(at)
			p.Out.URL.RawQuery = p.In.URL.RawQuery
			if p.Out.Header.Get("Authorization") == "" {
				p.Out.Header.Set("Authorization", "Bearer "+relayedToken)
			}
		},
	})
}

// allowEverything responds to reviews.
func allowEverything(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": map[string]any{
		"allowed": true, "authenticated": true, "user": map[string]any{"username": "client"},
	}}) // the relay has disconnected
}

// startRelay runs a relay of upstream until the test ends, and returns its URL.
func (s *Server) startRelay(upstream string) *url.URL {
	s.t.Helper()
	p := program.Start(s.t, os.Getenv(relayedEnv),
		"relay", "--cluster", "--addr", "127.0.0.1:0", "--upstream", upstream)
	at, err := url.Parse(p.URL())
	if err != nil {
		s.t.Fatal(err)
	}
	return at
}
