package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/internal/ports"
)

// benchResult has the members of bench's results that the tests check.
type benchResult struct {
	Transport     string
	ReadOnly      string
	Writes        int
	Events        int
	ForeignEvents int
	Bytes         int
	InitialEvents float64 `json:"initialEventsPerWatcher"`
	Missed        int
	Duplicates    int
	OutOfOrder    int
	Latency       struct{ P50, Max float64 } `json:"latencyMilliseconds"`
	Timeline      []struct{ Second float64 }
}

func benchResults(t *testing.T, out string) (results []benchResult) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), &results); err != nil {
		t.Fatalf("output %q: %v", out, err)
	}
	return results
}

// requireNoConfigMaps checks that bench has deleted its objects.
func requireNoConfigMaps(t *testing.T, base string) {
	t.Helper()
	if body := requireStatus(t, 200, "GET", base+"/api/v1/configmaps"); !strings.Contains(body, `"items":[]`) {
		t.Errorf("objects are left: %.300s", body)
	}
}

func TestBenchMeasuresEachTransport(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	s := startServer(t)
	page := filepath.Join(t.TempDir(), "page.html")
	out, notes := runCommand(t, cli.ExitOK, "bench", "configmaps", "--server", s.http, "--transport",
		"chunked,h2,websocket",
		"--watchers", "5", "--rate", "20", "--duration", "2s", "--timeout", "2m", "--size", "2KiB", "-o", "json",
		"--html", page)
	results := benchResults(t, out)
	if len(results) != 3 {
		t.Fatalf("got %d results, want 3: %s", len(results), out)
	}
	for _, r := range results {
		if r.Writes == 0 || r.Events != 5*r.Writes || r.Missed+r.Duplicates+r.OutOfOrder+r.ForeignEvents != 0 ||
			r.InitialEvents != 10 {
			t.Errorf("got %+v, want every write at 5 watchers, and 10 initial events", r)
		}
		if r.Bytes < 2000*r.Events || r.Latency.P50 <= 0 || r.Latency.Max < r.Latency.P50 || len(r.Timeline) == 0 {
			t.Errorf("got %+v, want bytes, latencies and a timeline", r)
		}
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(html); strings.Count(text, "<svg") != 2 || !strings.Contains(text, "websocket") ||
		strings.Contains(text, "<script") || strings.Contains(text, "<link") || strings.Contains(text, "src=") {
		t.Errorf("the page must have two plots and no reference to other files: %.2000s", text)
	}
	if !strings.Contains(notes, "chunked") {
		t.Errorf("stderr: got %q, want the progress", notes)
	}
	requireNoConfigMaps(t, s.http)
}

func TestBenchDeletesItsObjectsWhenInterrupted(t *testing.T) {
	s := startServer(t)
	watch := start(t, "watch", s.http+"/api/v1/configmaps")
	b := start(t, "bench", s.http+"/api/v1/namespaces/default/configmaps", "--watchers", "2", "--duration", "1h")
	watch.stdout.await(t, "an update", watch.ended,
		func(text string) bool { return strings.Contains(text, "MODIFIED") })
	b.interrupt()
	if code := b.exit(t); code != cli.ExitOK {
		t.Errorf("exit code %d, stderr %s; want 0", code, b.stderr)
	}
	if out := b.stdout.String(); !strings.Contains(out, "latency, ms") || !strings.Contains(out, "p99") {
		t.Errorf("got %q, want the results until the interrupt", out)
	}
	requireNoConfigMaps(t, s.http)
}

func TestBenchMeasuresAServerThatRefusesWrites(t *testing.T) {
	origin := startServer(t)
	create(t, origin.http, "/api/v1/namespaces/default/configmaps", "one")
	r := startRelay(t, "--upstream", origin.http, "--resource", "configmaps")
	watch := start(t, "watch", r.http+"/api/v1/configmaps")
	for attempt := 0; ; attempt++ {
		b := start(t, "bench", "configmaps", "--server", r.http, "--watchers", "3", "--duration", "1h", "--timeout",
			"2m", "-o", "json")
		b.stderr.await(t, "the measurement", b.ended,
			func(text string) bool { return strings.Contains(text, "measuring for") })
		for i := range 10 {
			create(t, origin.http, "/api/v1/namespaces/default/configmaps", fmt.Sprintf("more-%d-%d", attempt, i))
		}
		last := fmt.Sprintf("more-%d-9", attempt)
		watch.stdout.await(t, "the last event", watch.ended,
			func(text string) bool { return strings.Contains(text, last) })
		// The test cannot see when the watchers of bench have received the event, so it only waits.
		<-time.After(time.Second << (2 * attempt))
		b.interrupt()
		if code := b.exit(t); code != cli.ExitOK {
			t.Fatalf("exit code %d, stderr %s; want 0", code, b.stderr)
		}
		if !strings.Contains(b.stderr.String(), "permits no writes") {
			t.Errorf("stderr: got %s, want a note", b.stderr)
		}
		results := benchResults(t, b.stdout.String())
		if len(results) == 1 && results[0].ForeignEvents < 30 && attempt < 3 {
			continue // this machine is busy
		}
		if len(results) != 1 || results[0].ReadOnly == "" || results[0].Writes != 0 ||
			results[0].InitialEvents != float64(1+10*attempt) || results[0].ForeignEvents != 30 {
			t.Errorf("got %+v, want no writes, a reason for it, and 10 events at 3 watchers", results)
		}
		break
	}
}

func TestBenchReportsAServerThatGoesAway(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	t.Parallel() // slow, because the program gives up after 20 s
	// No other server or connection gets this port after the server has stopped.
	s := startServer(t, "--addr", ports.Address(t))
	watch := start(t, "watch", s.http+"/api/v1/configmaps")
	b := start(t, "bench", "configmaps", "--server", s.http, "--watchers", "2", "--duration", "1h", "--timeout", "20s")
	watch.stdout.await(t, "an update", watch.ended,
		func(text string) bool { return strings.Contains(text, "MODIFIED") })
	s.interrupt()
	if code := b.exit(t); code != cli.ExitFailure {
		t.Errorf("exit code %d, want 1", code)
	}
	for _, text := range []string{"no write has succeeded", "may be left", "connection refused"} {
		if !strings.Contains(b.stderr.String(), text) {
			t.Errorf("stderr: got %q, want %q", b.stderr, text)
		}
	}
	if !strings.Contains(b.stdout.String(), "latency, ms") {
		t.Errorf("stdout: got %q, want what was measured before", b.stdout)
	}
}

func TestBenchReportsAServerThatIsNotThere(t *testing.T) {
	_, notes := runCommand(t, cli.ExitFailure, "bench", "http://127.0.0.1:1/flags")
	if !strings.Contains(notes, "no server is running there") {
		t.Errorf("got %q, want advice", notes)
	}
}

func TestBenchRefusesInvalidArguments(t *testing.T) {
	s := startServer(t)
	for _, c := range []struct{ args, want string }{
		{"", "accepts 1 arg"},
		{"flags", "unknown resource"},
		{"ftp://host/flags", "must be an http or https URL"},
		{"pods --watchers 0", "--watchers 0: must be"},
		{"pods --objects -1", "--objects -1: must be"},
		{"pods --rate -1", "--rate -1: must be"},
		{"pods --rate NaN", "--rate NaN: must be"},
		{"pods --size 1GiB", "--size 1GiB: must be"},
		{"pods --duration 0", "--duration 0s: must be"},
		{"pods --timeout 0", "--timeout 0s: must be"},
		{"pods -o wide", `-o "wide": must be json`},
		{"pods -n A", "namespace"},
		{"pods --transport smoke --server " + s.http, `--transport "smoke"`},
		{s.http + "/api/v1/namespaces/a/pods -n b", `--namespace "b"`},
		{s.http + "/api/v1/pods --server x", "--server: not allowed"},
	} {
		args := append([]string{"bench"}, strings.Fields(c.args)...)
		if _, notes := runCommand(t, cli.ExitUsage, args...); !strings.Contains(notes, c.want) {
			t.Errorf("%s: got %q, want %q", c.args, notes, c.want)
		}
	}
}
