package kubeapi

import (
	"net/http"
	"strings"
	"testing"
)

// Compression can be disabled for all resources or for some of them, as the conformance case
// comp/breach-opt-out requires.
func TestNoCompressionDisablesCompression(t *testing.T) {
	const pods, gadgets = "/api/v1/namespaces/default/pods", "/apis/demo.example.com/v1/gadgets"
	object := `{"metadata":{"name":"large"},"text":"` + strings.Repeat("large ", 10<<10) + `"}`
	for _, everything := range []bool{false, true} {
		a := startServer(t, func(h *Handler) {
			h.Server.NoCompression = everything
			for i := range h.resources {
				h.resources[i].NoCompression = h.resources[i].Plural == "gadgets"
			}
		})
		for path, want := range map[string]string{pods: "gzip", gadgets: ""} {
			if everything {
				want = ""
			}
			for _, request := range []struct{ method, path, body string }{
				{http.MethodPost, path, object},
				{http.MethodGet, path + "/large", ""},
				{http.MethodGet, path, ""},
				{http.MethodGet, path + "?watch=1&timeoutSeconds=1", ""},
			} {
				res := a.do(t, request.method, request.path, request.body, "Accept-Encoding", "gzip", "Content-Type",
					"application/json")
				if got := res.Header.Get("Content-Encoding"); got != want || res.StatusCode >= 300 {
					t.Errorf("disabled for all: %t: %s %s: got %s with encoding %q, want %q", everything,
						request.method, request.path, res.Status, got, want)
				}
			}
		}
	}
}
