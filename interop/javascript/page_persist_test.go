//go:build unix

package javascript

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/browsertest"
	"github.com/listwatch/listwatch/js"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// copyPage follows a collection of which it keeps a copy. It posts what it shows after each change,
// and the version of the copy. It loads itself again when the server answers /reload.
const copyPage = `<!doctype html><script type="module">
  import { collection } from "/js/listwatch.js";
  const load = (sessionStorage.load = Number(sessionStorage.load ?? 0) + 1);
  let received = 0, saved = "", status = "";
  const counting = async (...request) => {
    const response = await fetch(...request);
    const reader = response.clone().body.getReader();
    (async () => { for (let r; !(r = await reader.read()).done; received += r.value.length); })().catch(() => {});
    return response;
  };
  const things = collection("/things", { persist: "things", transports: ["fetch"], fetch: counting });
  const report = () => fetch("/report", { method: "POST", body: JSON.stringify({ load, status: things.status, received, saved, names: [...things.keys()] }) });
  things.subscribe(report);
  setInterval(() => {
    indexedDB.open("listwatch").onsuccess = ({ target: { result: db } }) => {
      if (!db.objectStoreNames.contains("headers")) return db.close();
      db.transaction("headers").objectStore("headers").get("things").onsuccess = ({ target }) => {
        if (target.result && saved !== target.result.version) report(saved = target.result.version);
        db.close();
      };
    };
  }, 100);
  await fetch("/reload");
  location.reload();
</script>`

// A copyReport is the report that copyPage sends.
type copyReport struct {
	Load     int // how often the page was loaded
	Status   string
	Received int    // bytes since it was loaded
	Saved    string // the version of the copy
	Names    []string
}

// A page that is loaded again must show its collection before the server sends anything, and then
// receive only what has changed.
func TestReloadedPageShowsItsCopy(t *testing.T) {
	browsertest.Path(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	db := memory.Open(memory.Options{})
	things, err := db.Collection(store.CollectionSpec{APIVersion: "example.com/v1", Kind: "Thing", Plural: "things"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	put := func(name string) {
		names = append(names, name)
		if _, err := things.Create(ctx,
			fmt.Appendf(nil, `{"metadata":{"name":%q},"text":%q}`, name, strings.Repeat("x", 1000))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 200 {
		put(fmt.Sprintf("thing-%03d", i))
	}

	reports, reload := make(chan copyReport, 1000), make(chan struct{})
	answers := make(chan struct{}, 1) // holds a token for each watch that may be answered
	answers <- struct{}{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, copyPage) })
	mux.Handle("GET /js/", http.StripPrefix("/js", js.Handler()))
	mux.HandleFunc("GET /reload", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-reload:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST /report", func(_ http.ResponseWriter, r *http.Request) {
		var got copyReport
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		reports <- got
	})
	ws := &watchserver.Server{Source: things}
	mux.HandleFunc("GET /things", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-answers:
			ws.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(func() { _ = ws.Drain(context.Background()) })
	await := func(step string, ok func(copyReport) bool) (got copyReport) {
		t.Helper()
		for {
			select {
			case got = <-reports:
				if ok(got) {
					return got
				}
			case <-ctx.Done():
				t.Fatalf("%s: the page has %+v", step, got)
			}
		}
	}

	browsertest.Open(ctx, t, server.URL)
	first := await("save", func(r copyReport) bool { return r.Saved == db.Version().String() })
	if first.Received < 200_000 {
		t.Errorf("the first load received %d bytes, want all objects", first.Received)
	}
	reload <- struct{}{}
	shown := await("reload", func(r copyReport) bool { return r.Load == 2 && len(r.Names) > 0 })
	if shown.Status != "reconnecting" || shown.Received != 0 || !slices.Equal(shown.Names, names) {
		t.Errorf("the page shows %+v, want all objects before it has received anything", shown)
	}
	if _, err := things.Delete(ctx, listwatch.Key{Name: names[0]}, listwatch.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	names = names[1:]
	put("thing-new")
	answers <- struct{}{}
	live := await("difference", func(r copyReport) bool { return r.Load == 2 && r.Status == "live" })
	if !slices.Equal(live.Names, names) || live.Received > 3000 {
		t.Errorf("the page has %+v, want the difference: one object more and one less", live)
	}
}
