package examples

import (
	"bufio"
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// The conformance suite tests the client in Python in full; see docs/conformance.md.
func TestPythonClientFollowsACollection(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("python3 is missing; with CI=true it is required")
		}
		t.Skip("python3 is missing")
	}
	type flag struct {
		listwatch.Metadata `json:"metadata"`
		Enabled            bool `json:"enabled"`
	}
	flags := memory.New[flag]()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := flags.Create(ctx, flag{Metadata: listwatch.Metadata{Name: "dark-mode"}}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&watchserver.Server{Source: flags})
	defer server.Close()
	cmd := exec.CommandContext(ctx, python, "python/follow.py", server.URL+"/flags")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }() // it was killed
	defer cancel()
	lines := bufio.NewScanner(out)
	for _, want := range []string{"RESET None", `ADDED "dark-mode"`, `MODIFIED "dark-mode"`, `DELETED "dark-mode"`} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("got %q, %v; want %q", lines.Text(), lines.Err(), want)
		}
		key := listwatch.Key{Name: "dark-mode"}
		switch want {
		case `ADDED "dark-mode"`:
			_, err = flags.Update(ctx, key, func(f *flag) error { f.Enabled = true; return nil })
		case `MODIFIED "dark-mode"`:
			_, err = flags.Delete(ctx, key, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
