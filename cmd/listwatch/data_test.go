package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/bolt"
)

func TestWatchResumesAfterRestart(t *testing.T) {
	file, address := filepath.Join(t.TempDir(), "test.db"), ports.Address(t)
	args := []string{"--addr", address, "--data", file}
	s := startServer(t, args...)
	create(t, s.http, podsPath, "before")
	opened := make(chan listwatch.Version, 16)
	remote := &client.Remote{
		URL: s.http + "/api/v1/pods", Backoff: listwatch.Backoff{Min: 1, Max: 1},
		Trace: &client.Trace{Opened: func(_ string, from listwatch.Version) { opened <- from }},
	}
	w, err := remote.Watch(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	next := func(want string) {
		t.Helper()
		events := make([]listwatch.Event, 1)
		if n, err := w.Next(t.Context(), events); n != 1 || err != nil || events[0].Object.Key.Name != want {
			t.Fatalf("got %d events, error %v, object %+v; want %s", n, err, events[0].Object, want)
		}
	}
	next("before")
	header := epochOf(t, s.http)
	s.interrupt()
	if code := s.exit(t); code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, s.stderr)
	}
	s = startServer(t, args...)
	if got := epochOf(t, s.http); got != header || got == "" {
		t.Errorf("the restart changed the epoch from %q to %q", header, got)
	}
	create(t, s.http, podsPath, "after")
	next("after")
	if first := <-opened; first != 0 {
		t.Errorf("the first watch started at version %d, want one that begins with the state", first)
	}
	for len(opened) > 0 {
		if from := <-opened; from == 0 {
			t.Error("a watch began with the state again instead of resuming")
		}
	}
}

// epochOf returns the epoch from the response header of a server.
func epochOf(t *testing.T, base string) string {
	t.Helper()
	_, h, _ := request(t, http.MethodGet, base+"/api/v1/pods", "")
	return h.Get("Listwatch-Epoch")
}

// requireServeFails requires that serve exits with the given code, and that it prints one line,
// which contains the file name and each of the given words.
func requireServeFails(t *testing.T, file string, code int, words ...string) {
	t.Helper()
	p := start(t, "serve", "--addr", "127.0.0.1:0", "--data", file)
	got := p.exit(t)
	stderr := p.stderr.String()
	for _, want := range append(words, file) {
		if got != code || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("exit code %d, stderr %q; want %d and one line with %q", got, stderr, code, want)
		}
	}
}

func TestUnservableDataIsReported(t *testing.T) {
	foreign := writeFile(t, strings.Repeat("hello, world. ", 1000))
	requireServeFails(t, foreign, cli.ExitUnservable, "not a listwatch database")
	requireServeFails(t, t.TempDir(), cli.ExitUnservable, "not a regular file")
	requireServeFails(t, filepath.Join(t.TempDir(), "none", "test.db"), cli.ExitUnservable,
		"the directory does not exist")

	file := filepath.Join(t.TempDir(), "test.db")
	db, err := bolt.Open(file, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The program declares pods as namespaced. This declaration conflicts with that, because it is
	// not namespaced.
	pods, err := db.Collection(store.CollectionSpec{Kind: "Pod"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = pods.Create(t.Context(), []byte(`{"metadata":{"name":"a"}}`))
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	requireServeFails(t, file, cli.ExitUnservable,
		"the file has pods as Pod of v1 without namespaces, but it is declared as Pod of v1 with namespaces")

	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	requireServeFails(t, writeFile(t, string(data[:len(data)/2])), cli.ExitUnservable, "open ")
}

func TestRestoredDataGetsNewEpoch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.db")
	var epochs []string
	for _, more := range [][]string{nil, {"--data-restored"}, nil} {
		s := startServer(t, append([]string{"--data", file}, more...)...)
		epochs = append(epochs, epochOf(t, s.http))
		s.interrupt()
		s.exit(t)
	}
	if epochs[0] == epochs[1] || epochs[1] != epochs[2] {
		t.Errorf("got epochs %q, want only the second start to change the epoch", epochs)
	}
	p := start(t, "serve", "--data-restored")
	if code := p.exit(t); code != cli.ExitUsage {
		t.Errorf("without --data: exit code %d, want %d", code, cli.ExitUsage)
	}
}

func TestDeletedDataFileIsNoticed(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	t.Parallel() // slow, because the server looks at the file every 2 s
	file := filepath.Join(t.TempDir(), "test.db")
	s := startServer(t, "--data", file)
	create(t, s.http, podsPath, "before")
	if err := os.Rename(file, file+".moved"); err != nil {
		t.Fatal(err)
	}
	logged := func(text string) {
		t.Helper()
		s.stderr.await(t, text, s.ended,
			func(got string) bool { return strings.Contains(got, text) && strings.Contains(got, file) })
	}
	logged("deleted or replaced")
	for _, r := range [][2]string{{http.MethodPost, podsPath}, {http.MethodGet, "/readyz"}} {
		code, _, body := request(t, r[0], s.http+r[1], `{"metadata":{"name":"lost"}}`)
		if code != http.StatusServiceUnavailable || !strings.Contains(body, "deleted or replaced") ||
			strings.Contains(body, file) {
			t.Errorf("%s %s: got %d %s, want 503 without the path of the file", r[0], r[1], code, body)
		}
	}
	if code, _, _ := request(t, http.MethodGet, s.http+podsPath+"/before", ""); code != http.StatusOK {
		t.Errorf("GET: got %d, want 200", code)
	}
	if err := os.Rename(file+".moved", file); err != nil {
		t.Fatal(err)
	}
	logged("can be written again")
	create(t, s.http, podsPath, "after")
}

func TestOverwrittenDataFileIsNoticed(t *testing.T) {
	t.Parallel() // slow, because the server looks at the file every 2 s
	dir := t.TempDir()
	file, older := filepath.Join(dir, "test.db"), filepath.Join(dir, "older.db")
	s := startServer(t, "--data", file, "--debug-addr", "127.0.0.1:0")
	create(t, s.http, podsPath, "before")
	if p := start(t, "backup", file, older, "--debug-url", s.debug); p.exit(t) != cli.ExitOK {
		t.Fatal(p.stderr)
	}
	create(t, s.http, podsPath, "after")
	backup, err := os.ReadFile(older)
	if err == nil {
		err = os.WriteFile(file, backup, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.stderr.await(t, "a log line", s.ended, func(got string) bool {
		return strings.Contains(got, "overwritten while it was open") && strings.Contains(got, file)
	})
	for _, r := range [][2]string{{http.MethodPost, podsPath}, {http.MethodGet, "/readyz"}} {
		code, _, body := request(t, r[0], s.http+r[1], `{"metadata":{"name":"lost"}}`)
		if code != http.StatusServiceUnavailable || !strings.Contains(body, "overwritten") ||
			strings.Contains(body, file) {
			t.Errorf("%s %s: got %d %s, want 503 without the path of the file", r[0], r[1], code, body)
		}
	}
	requireStatus(t, http.StatusOK, http.MethodGet, s.http+podsPath+"/after")
	s.interrupt()
	s.exit(t)
	restored := startServer(t, "--data", file, "--data-restored")
	requireStatus(t, http.StatusOK, http.MethodGet, restored.http+podsPath+"/before")
	requireStatus(t, http.StatusNotFound, http.MethodGet, restored.http+podsPath+"/after")
}

func TestBackupOfARunningServerCanBeRestored(t *testing.T) {
	dir := t.TempDir()
	file, out := filepath.Join(dir, "test.db"), filepath.Join(dir, "out.db")
	s := startServer(t, "--data", file, "--debug-addr", "127.0.0.1:0")
	create(t, s.http, podsPath, "saved")
	p := start(t, "backup", file, out)
	if code := p.exit(t); code != cli.ExitFailure || !strings.Contains(p.stderr.String(), "--debug-url") {
		t.Errorf("without --debug-url: exit code %d, %s", code, p.stderr)
	}
	other := writeFile(t, "")
	p = start(t, "backup", other, out, "--debug-url", s.debug)
	if code := p.exit(t); code != cli.ExitUsage ||
		!strings.Contains(p.stderr.String(), "has the file "+file+" open, not "+other) {
		t.Errorf("a file that the server does not have open: exit code %d, %s", code, p.stderr)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.backup")); len(left) > 0 {
		t.Errorf("the refused backup left %q", left)
	}
	p = start(t, "backup", file, out, "--debug-url", s.debug)
	if code := p.exit(t); code != cli.ExitOK {
		t.Fatalf("exit code %d: %s", code, p.stderr)
	}
	create(t, s.http, podsPath, "later")
	requireServeFails(t, out, cli.ExitUnservable, "--data-restored")
	restored := startServer(t, "--data", out, "--data-restored")
	for name, want := range map[string]int{"saved": http.StatusOK, "later": http.StatusNotFound} {
		if code, _, body := request(t, http.MethodGet, restored.http+podsPath+"/"+name, ""); code != want {
			t.Errorf("%s: got %d %s, want %d", name, code, body, want)
		}
	}
}

func TestDataInUseNamesTheProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	t.Parallel() // slow, because the program waits for the lock before it fails
	file := filepath.Join(t.TempDir(), "test.db")
	db, err := bolt.Open(file, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	requireServeFails(t, file, cli.ExitFailure, fmt.Sprintf("in use by process %d (", os.Getpid()),
		"one process at a time")
	if err := errors.Join(db.Close(), os.Remove(file)); err != nil {
		t.Fatal(err)
	}
}
