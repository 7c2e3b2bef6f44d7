package watchserver_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

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
