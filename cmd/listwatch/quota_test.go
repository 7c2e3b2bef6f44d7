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
	create(t, s.http, "/api/v1/namespaces/default/configmaps", "innocent") // another resource
	if code, _, body := request(t, "DELETE", s.http+podsPath+"/one", ""); code != http.StatusOK {
		t.Errorf("delete: got %d %s", code, body)
	}
	create(t, s.http, podsPath, "three")
	_, _, metrics := request(t, "GET", s.debug+"/metrics", "")
	for _, want := range []string{`listwatch_requests_refused_total{code="403",reason="quota_bytes"} 1`, `listwatch_requests_refused_total{code="403",reason="quota_objects"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics do not have %s", want)
		}
	}
}

func TestMemoryCountsObjectsAndHistory(t *testing.T) {
	s := startServer(t, "--memory", "8MiB", "--debug-addr", "127.0.0.1:0")
	// The history of one object fills the memory, until the server drops it.
	create(t, s.http, podsPath, "one")
	update := func(i int) (int, string) {
		code, _, body := request(t, "PUT", s.http+podsPath+"/one", largePod("one", 100<<10+i))
		return code, body
	}
	late := time.Now().Add(testTimeout)
	// On a busy machine the server may drop the history between two updates, again and again.
	for i := 0; ; i++ {
		code, body := update(i)
		if code == http.StatusInsufficientStorage {
			break
		}
		if code != http.StatusOK || time.Now().After(late) {
			t.Fatalf("update %d of 100 KiB: got %d %s, want 200, and finally 507", i, code, body)
		}
	}
	s.stderr.await(t, "that it drops the history", s.ended, func(text string) bool { return strings.Contains(text, "dropping the history") })
	for i := 0; ; i++ { // the sizes are read again within milliseconds
		if code, body := update(1000 + i); code == http.StatusOK {
			break
		} else if time.Now().After(late) {
			t.Fatalf("after the history was dropped: got %d %s, want 200", code, body)
		}
	}
	// Objects fill the memory for good, but they can be read and deleted.
	n := 0
	for ; n < 200; n++ {
		code, _, body := request(t, "POST", s.http+podsPath, largePod(fmt.Sprint("pod-", n), 100<<10))
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
	if code, _, body := request(t, "DELETE", s.http+podsPath+"/pod-0", `{"kind":"DeleteOptions","apiVersion":"v1"}`); code != http.StatusOK {
		t.Errorf("delete: got %d %s, want 200", code, body)
	}
	_, _, metrics := request(t, "GET", s.debug+"/metrics", "")
	for _, want := range []string{`{code="507",reason="stored_bytes"}`, "\nlistwatch_stored_memory_bytes ", "\nlistwatch_stored_memory_limit_bytes 6.291456e+06"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics do not have %s", want)
		}
	}
}
