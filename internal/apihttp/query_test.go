package apihttp

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch/transport"
)

// query returns a QUERY of user ann.
func query(target, contentType, body string) *http.Request {
	r := httptest.NewRequest(transport.MethodQuery, target, strings.NewReader(body))
	r.Header.Set("User", "ann")
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

func TestQueryBecomesGet(t *testing.T) {
	long := "labelSelector=app+in+%28" + strings.Repeat("a%2C", 1000) + "b%29"
	want, err := url.ParseQuery("watch=true&limit=5&" + long)
	if err != nil {
		t.Fatal(err)
	}
	r := query("/?watch=true", transport.QueryType, "limit=5&"+long)
	seen := new(recorder)
	first, second := seen.gate(), seen.gate()
	calls := 0
	handler := HandlerFunc(func(_ http.ResponseWriter, r *http.Request, a *Admitted) error {
		calls++
		got, err := a.Query()
		if r.Method != http.MethodGet || err != nil {
			t.Errorf("got %s and %v, want a GET", r.Method, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("parameters (-want +got):\n%s", diff)
		}
		if rest, err := io.ReadAll(r.Body); len(rest) > 0 || err != nil || r.ContentLength != 0 {
			t.Errorf("got a body of %d bytes, %v, length %d, want none", len(rest), err, r.ContentLength)
		}
		return nil
	})
	// Behind the first gate the URL exceeds its limit.
	if code := status(first.Handler(first.Handler(second.Handler(handler))), r); code != 200 || calls != 1 {
		t.Errorf("got %d and %d calls, want 200 and one", code, calls)
	}
	if used, _ := first.Usage(); used.RequestBytes != 0 {
		t.Errorf("%d bytes are still in use, want 0", used.RequestBytes)
	}
}

func TestBadQueryIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		r    *http.Request
		want int
	}{
		"no type":    {query("/", "", "a=b"), http.StatusBadRequest},
		"other type": {query("/", "text/plain", "a=b"), http.StatusUnsupportedMediaType},
		"bad form":   {query("/", transport.QueryType, "a=%zz"), http.StatusBadRequest},
		"JSON":       {query("/", "application/json", "{}"), http.StatusUnsupportedMediaType},
		"in both":    {query("/?a=b", transport.QueryType, "a=b"), http.StatusBadRequest},
		"too large": {
			query("/", transport.QueryType, strings.Repeat("x", maxQueryBytes+1)),
			http.StatusRequestEntityTooLarge,
		},
		"no credentials": {request(transport.MethodQuery, "/"), http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			seen := new(recorder)
			g := seen.gate()
			w := httptest.NewRecorder()
			g.Handler(HandlerFunc(func(http.ResponseWriter, *http.Request, *Admitted) error {
				t.Error("the handler was called")
				return nil
			})).ServeHTTP(w, tt.r)
			if w.Code != tt.want || len(seen.refused) != 1 {
				t.Errorf("got %d and the refusals %q, want %d and one", w.Code, seen.refused, tt.want)
			}
			wrongType := slices.Contains([]string{"no type", "other type", "JSON"}, name)
			if offered := w.Header().Get("Accept-Query"); (offered != "") != wrongType {
				t.Errorf("got Accept-Query %q", offered)
			}
			if used, _ := g.Usage(); used.RequestBytes != 0 {
				t.Errorf("%d bytes are still in use, want 0", used.RequestBytes)
			}
		})
	}
}

// Before its sender is known, a request must not make the server read a body.
func TestQueryIsReadOnceTheSenderIsKnown(t *testing.T) {
	g := new(recorder).gate()
	r := query("/", transport.QueryType, "a=b")
	handler := HandlerFunc(func(_ http.ResponseWriter, r *http.Request, a *Admitted) error {
		if body, err := io.ReadAll(r.Body); r.Method != transport.MethodQuery || string(body) != "a=b" || err != nil {
			t.Errorf("got %s with the body %q, %v, want an unread QUERY", r.Method, body, err)
		}
		return nil
	})
	if code := status(g.Handler(handler), WithoutCredentials(r)); code != 200 {
		t.Errorf("got %d, want 200", code)
	}
}
