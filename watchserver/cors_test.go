package watchserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket"
	"github.com/listwatch/listwatch/transport/websocket/gorilla"
	"github.com/listwatch/listwatch/watchserver"
)

// Conformance case cors/simple: a cache must not serve the response to a request without an Origin
// to a page.
func TestCORSResponsesVaryByOrigin(t *testing.T) {
	h := watchserver.CORS(http.NotFoundHandler(), []string{"https://app.example.com"})
	for _, origin := range []string{"", "https://app.example.com", "https://evil.example"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Vary"); got != "Origin" {
			t.Errorf("origin %q: got Vary %q, want Origin", origin, got)
		}
	}
}

func TestOriginsApplyToEveryWebSocketTransport(t *testing.T) {
	for _, transports := range [][]transport.Server{nil, {&websocket.Server{}}, {&gorilla.Server{}}} {
		f := newFixture(t, func(s *watchserver.Server) {
			s.Transports, s.Access.Origins = transports, []string{"https://app.example.com"}
		})
		for origin, allowed := range map[string]bool{"https://app.example.com": true, "https://evil.example": false} {
			r := &transport.Request{URL: f.WatchURL("/flags", ""), Header: http.Header{"Origin": {origin}}}
			w, err := (&websocket.Client{Network: f.Network}).Dial(t.Context(), r)
			if allowed != (err == nil) {
				t.Errorf("%v, origin %s: got error %v, want an error: %v", transports, origin, err, !allowed)
			}
			if err == nil {
				w.Close()
			}
		}
	}
}
