package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
)

// A pod lives for the seconds in its spec, and any other pod forever.
func TestServedObjectsEndAfterTheirTTL(t *testing.T) {
	t.Parallel() // slow, because an object lives for a second at least
	for _, data := range []string{"", filepath.Join(t.TempDir(), "test.db")} {
		s := startServer(t, "--data", data, "--ttl", "pods=spec.activeDeadlineSeconds", "--ttl", "events=1h")
		w := start(t, "watch", s.http+podsPath, "--transport", "chunked")
		create(t, s.http, podsPath, "forever")
		w.stdout.await(t, "ADDED", w.ended, func(text string) bool { return strings.Contains(text, "forever") })
		const mortal = `{"metadata":{"name":"mortal"},"spec":{"activeDeadlineSeconds":1}}`
		code, _, body := request(t, http.MethodPost, s.http+podsPath, mortal)
		if code != http.StatusCreated {
			t.Fatalf("create: got %d %s", code, body)
		}
		w.stdout.await(t, "DELETED", w.ended, func(text string) bool { return strings.Contains(text, "DELETED") })
		requireStatus(t, http.StatusOK, http.MethodGet, s.http+podsPath+"/forever")
		requireStatus(t, http.StatusNotFound, http.MethodGet, s.http+podsPath+"/mortal")
		w.interrupt()
		s.interrupt()
	}
	if p := start(t, "serve", "--ttl", "cats=1h"); p.exit(t) != cli.ExitUsage {
		t.Errorf("a resource that does not exist: %s", p.stderr)
	}
}
