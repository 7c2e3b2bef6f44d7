//go:build unix

package javascript

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/internal/browsertest"
	"github.com/listwatch/listwatch/js"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// writesPage runs the steps of test/writes and posts the lines.
const writesPage = `<!doctype html><script type="module">
  import { objects } from "/js/listwatch.js";
  import { run } from "/test/steps.js";
  const body = await run(objects, "/things", "").catch((error) => "failed: " + error.stack);
  fetch("/report", { method: "POST", body });
</script>`

// wantWrites are the lines of test/writes for a crudserver.
const wantWrites = `create: value 0
create again: AlreadyExists 409
five concurrent updates: value 5
patch: value 7
patch of an old version: Conflict 409
delete an old version: Conflict 409
delete: value 7
get: NotFound 404
update: NotFound 404`

// newWriteServer serves a collection, and the page that writes to it. The channel receives the
// lines that the page posts.
func newWriteServer(t *testing.T) (url string, lines <-chan string) {
	t.Helper()
	things, err := memory.Open(memory.Options{}).Collection(
		store.CollectionSpec{APIVersion: "example.com/v1", Kind: "Thing", Plural: "things"})
	if err != nil {
		t.Fatal(err)
	}
	reports := make(chan string, 1)
	h := &crudserver.Handler{Path: "/things", Collection: things}
	mux := http.NewServeMux()
	mux.Handle("/things", h)
	mux.Handle("/things/", h)
	mux.Handle("GET /js/", http.StripPrefix("/js", js.Handler()))
	mux.Handle("GET /test/", http.StripPrefix("/test", http.FileServer(http.Dir(clientDir+"/test/writes"))))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, writesPage)
	})
	mux.HandleFunc("POST /report", func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body) // a truncated text does not match what the test expects
		reports <- string(text)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL, reports
}

func TestNodeWritesObjects(t *testing.T) {
	url, _ := newWriteServer(t)
	out, err := exec.CommandContext(t.Context(), nodePath(t), clientDir+"/test/writes/node.js", url+"/things",
		"").CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != wantWrites {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, wantWrites)
	}
}

func TestPageWritesObjects(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	url, lines := newWriteServer(t)
	browsertest.Open(ctx, t, url)
	select {
	case got := <-lines:
		if got != wantWrites {
			t.Errorf("got\n%s\nwant\n%s", got, wantWrites)
		}
	case <-ctx.Done():
		t.Fatal("the page has posted nothing")
	}
}
