package watchserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/budget"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// flags returns a collection of flags with the given names.
func flags(t *testing.T, names ...string) listwatch.Source {
	t.Helper()
	c := memory.New[Flag]()
	for _, name := range names {
		labels := map[string]string{"a": strings.Repeat("b", 60)}
		if _, err := c.Create(t.Context(), Flag{Metadata: listwatch.Metadata{Name: name, Labels: labels}}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// Middleware between a gate and the handler may narrow a selector, for example to a tenant.
func TestChangesBehindTheGateHaveEffect(t *testing.T) {
	s := &watchserver.Server{Source: flags(t, "mine", "theirs")}
	narrow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.URL.RawQuery = "fieldSelector=metadata.name%3Dmine"
		s.ServeHTTP(w, r)
	})
	w := httptest.NewRecorder()
	s.Gate(narrow).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if body := w.Body.String(); !strings.Contains(body, "mine") || strings.Contains(body, "theirs") {
		t.Errorf("got %s, want only the object that the middleware selects", body)
	}
}

func TestChangedMethodIsCheckedAgain(t *testing.T) {
	s := &watchserver.Server{Source: flags(t)}
	inner := s.Gate(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a %s of a foreign page passed the gate", r.Method)
	}))
	outer := s.Gate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.Method = http.MethodDelete
		inner.ServeHTTP(w, r)
	}))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Origin", "https://elsewhere.example")
	w := httptest.NewRecorder()
	outer.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("got status %d, want 403", w.Code)
	}
}

// The fields of a Server may be set until the first request, also after Gate.
func TestGateReadsOptionsOfEachRequest(t *testing.T) {
	s := &watchserver.Server{Source: flags(t)}
	h := s.Gate(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	s.Access.Origins = []string{"https://page.example"}
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Origin", "https://page.example")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Errorf("got status %d: %s, want 200", w.Code, w.Body)
	}
}

func TestClientWithoutAddressTakesTurns(t *testing.T) {
	s := &watchserver.Server{Source: flags(t)}
	limit := max(1, runtime.GOMAXPROCS(0)-1)
	h := s.Gate(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for range limit {
			if end, err := budget.BeginTurn(r.Context(), budget.Large); err == nil {
				defer end()
			}
		}
		ended, cancel := context.WithCancel(r.Context())
		cancel()
		if _, err := budget.BeginTurn(ended, budget.Large); err == nil {
			t.Errorf("got more than %d turns at once", limit)
		}
	}))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = ""
	h.ServeHTTP(httptest.NewRecorder(), r)
}

// A response that waits for its turn until the request ends must not look complete.
func TestResponseWithoutATurnIsAnError(t *testing.T) {
	var names []string
	for i := range 300 {
		names = append(names, fmt.Sprint("flag-", i))
	}
	s := &watchserver.Server{Source: flags(t, names...)}
	h := s.Gate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range max(1, runtime.GOMAXPROCS(0)-1) { // take all turns
			end, err := budget.BeginTurn(r.Context(), budget.Large)
			if err != nil {
				t.Error(err)
				return
			}
			defer end()
		}
		ctx, cancel := context.WithTimeout(r.Context(), time.Millisecond)
		defer cancel()
		s.ServeHTTP(w, r.WithContext(ctx))
	}))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusGatewayTimeout || !json.Valid(w.Body.Bytes()) {
		t.Errorf("got status %d and %q, want 504 with a Status", w.Code, w.Body)
	}
}
