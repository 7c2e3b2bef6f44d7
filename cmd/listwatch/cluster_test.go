package main

import (
	"strings"
	"testing"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
)

func TestClusterRelayPassesWritesOn(t *testing.T) {
	origin := startServer(t, "--token-file", writeFile(t, "secret,ada,1"))
	r := startRelay(t, "--cluster", "--upstream", origin.http, "--upstream-token", "secret")
	if code, _, body := request(t, "POST", r.http+podsPath, `{"metadata":{"name":"one"}}`, "Authorization",
		"Bearer secret"); code != 201 {
		t.Fatalf("create: got %d %s, want 201", code, body)
	}
	requireStatus(t, 401, "GET", r.http+podsPath)
	// listwatch serve has no reviews, so the relay cannot answer from a cache.
	requireStatus(t, 503, "GET", r.http+podsPath+"?resourceVersion=0", "Authorization", "Bearer secret")
	if body := requireStatus(t, 200, "GET", r.http+podsPath+"/one", "Authorization",
		"Bearer secret"); !strings.Contains(body, `"name":"one"`) {
		t.Errorf("got %s, want the pod", body)
	}
}

func TestClusterRelayRefusesContradictions(t *testing.T) {
	for _, args := range [][]string{
		{"--resource", "pods"},
		{"--token-file", writeFile(t, "secret,ada,1")},
		{"--no-cache", "[a"},
		{"--persist", t.TempDir()},
		{"--front-proxy-cert", "a", "--front-proxy-key", "b"},
		{"--front-proxy-cert", "a"},
	} {
		p := start(t, append([]string{"relay", "--cluster", "--upstream", "http://127.0.0.1:1"}, args...)...)
		if code := p.exit(t); code != cli.ExitUsage {
			t.Errorf("%q: exit code %d, want %d: %s", args, code, cli.ExitUsage, p.stderr)
		}
	}
}
