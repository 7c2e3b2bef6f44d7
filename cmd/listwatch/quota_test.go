package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestQuotaOfEachResourceIsEnforced(t *testing.T) {
	s := startServer(t, "--quota-objects", "2", "--quota-bytes", "100KiB", "--debug-addr", "127.0.0.1:0")
	create(t, s.http, podsPath, "one")
	code, _, body := request(t, "POST", s.http+podsPath, largePod("large", 101<<10))
	if code != http.StatusForbidden || !strings.Contains(body, "exceeded quota: bytes") {
		t.Errorf("a large pod: got %d %s, want 403", code, body)
	}
	create(t, s.http, podsPath, "two")
	code, _, body = request(t, "POST", s.http+podsPath, `{"metadata":{"name":"three"}}`)
	if code != http.StatusForbidden || !strings.Contains(body, `pods \"three\" is forbidden: exceeded quota: objects`) {
		t.Errorf("a third pod: got %d %s, want 403", code, body)
	}
	// The quota of pods does not apply to config maps.
	create(t, s.http, "/api/v1/namespaces/default/configmaps", "innocent")
	if code, _, body := request(t, "DELETE", s.http+podsPath+"/one", ""); code != http.StatusOK {
		t.Errorf("delete: got %d %s", code, body)
	}
	create(t, s.http, podsPath, "three")
	_, _, metrics := request(t, "GET", s.debug+"/metrics", "")
	for _, want := range []string{
		`listwatch_requests_refused_total{code="403",reason="quota_bytes"} 1`,
		`listwatch_requests_refused_total{code="403",reason="quota_objects"} 1`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics do not have %s", want)
		}
	}
}

func TestMemoryCountsObjectsAndHistory(t *testing.T) {
	s := startServer(t, "--memory", "8MiB", "--debug-addr", "127.0.0.1:0")
	pod := func(n int) string { // takes less processor time than largePod
		return fmt.Sprintf(`{"metadata":{"name":"pod-%d"},"data":"%s"}`, n, strings.Repeat(" ", 100<<10))
	}
	// Objects fill the memory permanently, because the server does not drop them. Reads and deletes
	// still succeed.
	n := 0
	for ; n < 200; n++ {
		code, _, body := request(t, "POST", s.http+podsPath, pod(n))
		if code == http.StatusInsufficientStorage {
			break
		}
		if code != http.StatusCreated {
			t.Fatalf("create: got %d %s, want 201 or 507", code, body)
		}
	}
	if code, _, _ := request(t, "GET", s.http+podsPath, ""); code != http.StatusOK || n == 200 {
		t.Errorf("a list after %d objects: got %d, want 200", n, code)
	}
	if strings.Contains(s.stderr.String(), "dropping the history") {
		t.Error("the server dropped the history, which would not help")
	}
	for _, want := range []string{
		"request failed",
		"the memory for objects and history is full, and writes are refused",
	} {
		for late := time.Now().Add(testTimeout); !strings.Contains(s.stderr.String(),
			want); <-time.After(10 * time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("the log has no line %q:\n%s", want, s.stderr)
			}
		}
	}
	// The history keeps deleted objects. So now the history fills the memory, until the server
	// drops it.
	for i := range n / 2 {
		if code, _, body := request(t, "DELETE", fmt.Sprint(s.http, podsPath, "/pod-", i),
			`{"kind":"DeleteOptions","apiVersion":"v1"}`); code != http.StatusOK {
			t.Fatalf("delete: got %d %s, want 200", code, body)
		}
	}
	for late := time.Now().Add(testTimeout); ; {
		code, _, body := request(t, "POST", s.http+podsPath, `{"metadata":{"name":"last"}}`)
		if code == http.StatusCreated {
			break
		}
		if code != http.StatusInsufficientStorage || time.Now().After(late) {
			t.Fatalf("create: got %d %s, want 507, and finally 201", code, body)
		}
		<-time.After(10 * time.Millisecond)
	}
	if !strings.Contains(s.stderr.String(), "dropping the history") {
		t.Error("a write succeeded before the server dropped the history")
	}
	_, _, metrics := request(t, "GET", s.debug+"/metrics", "")
	for _, want := range []string{
		`{code="507",reason="stored_bytes"}`, "\nlistwatch_stored_memory_bytes ",
		"\nlistwatch_stored_memory_limit_bytes 6.291456e+06",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics do not have %s", want)
		}
	}
}
