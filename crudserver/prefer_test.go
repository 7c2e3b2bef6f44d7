package crudserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/store"
)

// The preference has an effect on writes that succeed, and on nothing else.
func TestPreferMinimal(t *testing.T) {
	h := &Handler{Path: "/flags", Collection: newCollection(t, store.CollectionSpec{Kind: "Flag"})}
	for _, c := range []struct {
		name, method, path, prefer, body string
		code                             int
		applied                          bool
	}{
		{"create", "POST", "/flags", "return=minimal", `{"metadata":{"name":"a"}}`, 201, true},
		{"update", "PUT", "/flags/a", `a, Return = "minimal"; x=1`, `{"metadata":{"name":"a"},"x":1}`, 204, true},
		{"patch", "PATCH", "/flags/a", "return=minimal, return=representation", "{}", 204, true},
		{"the first preference counts", "PATCH", "/flags/a", "return=representation, return=minimal", "{}", 200, false},
		{"another value", "PATCH", "/flags/a", "return=Minimal", "{}", 200, false},
		{"no preference", "PATCH", "/flags/a", "", "{}", 200, false},
		{"read", "GET", "/flags/a", "return=minimal", "", 200, false},
		{"error", "PATCH", "/flags/b", "return=minimal", "{}", 404, false},
		{"delete", "DELETE", "/flags/a", "return=minimal", "", 204, true},
	} {
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		r.Header.Set("Prefer", c.prefer)
		if c.method == http.MethodPatch {
			r.Header["Content-Type"] = mergePatch
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		applied := w.Header().Get("Preference-Applied") == "return=minimal"
		if w.Code != c.code || applied != c.applied || applied != (w.Body.Len() == 0) {
			t.Errorf("%s: got %d, applied %t, %q, want %d, applied %t", c.name, w.Code, applied, w.Body, c.code,
				c.applied)
		}
		if c.applied && c.method != http.MethodDelete && w.Header().Get("ETag") == "" {
			t.Errorf("%s: the response has no ETag, so the client does not know the version", c.name)
		}
	}
}
