package kubeapi

import (
	"net/http"
	"strings"
	"testing"
)

// comp/breach-opt-out: of all resources, or of some.
func TestWhatMayNotBeCompressedIsNot(t *testing.T) {
	const pods, gadgets = "/api/v1/namespaces/default/pods", "/apis/demo.example.com/v1/gadgets"
	object := `{"metadata":{"name":"large"},"text":"` + strings.Repeat("large ", 10<<10) + `"}`
	for _, everything := range []bool{false, true} {
		a := serve(t, func(h *Handler) {
			h.Server.NoCompression = everything
			for i := range h.resources {
				h.resources[i].NoCompression = h.resources[i].Plural == "gadgets"
			}
		})
		for path, want := range map[string]string{pods: "gzip", gadgets: ""} {
			if everything {
				want = ""
			}
			for _, ask := range []struct{ method, path, body string }{
				{http.MethodPost, path, object},
				{http.MethodGet, path + "/large", ""},
				{http.MethodGet, path, ""},
				{http.MethodGet, path + "?watch=1&timeoutSeconds=1", ""},
			} {
				res := a.do(t, ask.method, ask.path, ask.body, "Accept-Encoding", "gzip", "Content-Type", "application/json")
				if got := res.Header.Get("Content-Encoding"); got != want || res.StatusCode >= 300 {
					t.Errorf("off %t: %s %s: got %s in %q, want %q", everything, ask.method, ask.path, res.Status, got, want)
				}
			}
		}
	}
}
