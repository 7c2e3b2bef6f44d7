package conformancecmd_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/adapters"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/report"
	"github.com/listwatch/listwatch/conformance/runner"
	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestUntestableTargetIsRefused(t *testing.T) {
	base := serve(t, nil)
	closed := serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	})
	for address, want := range map[string]string{
		"http://127.0.0.1:1/api/v1/pods":    "is it running?",
		base + "/nowhere":                   "cannot be tested",
		base + "/api":                       "want a list",
		base + "/api/v1/pods?limit=5":       "remove the query",
		"ftp://127.0.0.1/":                  "must be an http or https URL",
		"http://me:secret@127.0.0.1/":       "pass a header",
		closed + "/api/v1/pods":             "pass a token",
		"https" + base[4:] + "/api/v1/pods": "cannot be tested",
	} {
		_, err := adapters.URL(t.Context(), address, adapters.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an error with %q", address, err, want)
		}
	}
	for resource, want := range map[string]string{
		"namespaces": "has no namespaces", "widgets.v1.example.com": "not found",
		"nothing": "widgets.v1.demo.example.com",
	} {
		if _, err := adapters.Kube(t.Context(), base, resource, adapters.Options{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("resource %s: got %v, want an error with %q", resource, err, want)
		}
	}
}

func TestCredentialsAreHiddenInReports(t *testing.T) {
	const secret = "Bearer s3cr3t"
	base := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != secret {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/configmaps") {
				w.WriteHeader(http.StatusTeapot) // makes the cases fail
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	c, err := adapters.Kube(t.Context(), base, "",
		adapters.Options{Header: http.Header{"Authorization": {secret}}, Timeout: patient.Timeout})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := conformance.Execute(t.Context(), c.Target,
		conformance.Options{Run: []string{"handshake/ws-version", "handshake/headers-before-events"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	failed, all := 0, ""
	for _, o := range r.Outcomes {
		if o.Verdict == runner.Fail {
			failed++
		}
		all += strings.Join(append(append(o.Messages, o.Log...), o.Timeline...), "\n")
	}
	if failed != 2 || strings.Contains(all, "s3cr3t") || !strings.Contains(all, "(hidden)") {
		t.Errorf("got %d failures, want 2; the credentials must be hidden in:\n%s", failed, all)
	}
}

// The run reports once that the server no longer responds, and skips the remaining cases.
func TestRunEndsWhenTheServerIsGone(t *testing.T) {
	base, stop := serveUntil(t, nil)
	c, err := adapters.Kube(t.Context(), base, "", adapters.Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	r, err := conformance.Execute(t.Context(), c.Target,
		conformance.Options{Subject: harness.Server, Run: []string{"handshake", "event"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]bool{}
	for _, o := range r.Outcomes {
		if o.Verdict.IsFailure() {
			failed[o.ID] = true
		}
	}
	if len(failed) != 1 || r.OK() {
		t.Errorf("got failures of %v, OK %v; want the failure of one case", slices.Collect(maps.Keys(failed)), r.OK())
	}
	var text strings.Builder
	if err := report.Text(&text, r); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "the target no longer responds"); n != 1 {
		t.Errorf("got %d lines that say that the target no longer responds, want 1:\n%s", n, text.String())
	}
	if err := c.Close(); err == nil || strings.Count(err.Error(), "refused") != 1 {
		t.Errorf("close: got %v, want one error", err)
	}
}

func TestInterruptedRunCleansUp(t *testing.T) {
	base := serve(t, nil)
	c, err := adapters.Kube(t.Context(), base, "", adapters.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := 0
	r, err := conformance.Execute(ctx, c.Target, conformance.Options{Run: []string{"event"}},
		func(conformance.Outcome) {
			if ran++; ran == 3 {
				cancel()
			}
		})
	if err != nil || r.OK() {
		t.Fatalf("got %v, OK %v; want an unfinished run", err, r.OK())
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/configmaps", "/api/v1/namespaces"} {
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(text), `"items":[]`) {
			t.Errorf("%s: got %s, %v, want no items", path, text, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
