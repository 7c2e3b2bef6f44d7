//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/browsertest"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// probe posts what the page shows, whenever it changes, and presses the first button once it is
// there.
const probe = `<script type="module">
  let shown = "", pressed = false;
  const look = () => {
    const text = document.querySelector("#status").innerText + "|" + [...document.querySelectorAll("tbody tr")].map((r) => r.innerText).join("|");
    if (text !== shown) fetch("/shown", { method: "POST", body: (shown = text) });
    const button = document.querySelector("button");
    if (button && !pressed) button.click(), (pressed = true);
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
  look();
</script>`

// newPage serves the example with the probe in its page. It returns the URL, what the page shows,
// and the connections of its watches.
func newPage(t *testing.T, flags *store.Typed[Flag]) (url string, shown chan string, watches chan net.Conn) {
	t.Helper()
	shown, watches = make(chan string, 100), make(chan net.Conn, 100)
	example := newHandler(flags)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/shown" {
			text, _ := io.ReadAll(r.Body)
			shown <- string(text)
			return
		}
		example.ServeHTTP(w, r)
		if r.URL.Path == "/" {
			_, _ = io.WriteString(w, probe)
		}
	}))
	server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateHijacked {
			watches <- c
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, shown, watches
}

func TestPageShowsTheFlags(t *testing.T) {
	if lines := bytes.Count(page, []byte("\n")); lines > 60 {
		t.Errorf("the page has %d lines, want at most 60", lines)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	browsertest.Path(t)
	flags := memory.New[Flag]()
	for _, name := range []string{"a", "b"} {
		if _, err := flags.Create(ctx, Flag{Metadata: listwatch.Metadata{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	url, shown, watches := newPage(t, flags)
	await := func(what string, wants ...string) {
		t.Helper()
		last := ""
		for {
			select {
			case last = <-shown:
				if rows := strings.Split(last, "|"); len(rows) == len(wants) && hasPrefixes(rows, wants) {
					return
				}
			case <-ctx.Done():
				t.Fatalf("%s: the page shows %q, want %q", what, last, wants)
			}
		}
	}
	browsertest.Open(ctx, t, url)
	await("after the button was pressed", "live", "a\tyes", "b\tno")
	if _, err := flags.Delete(ctx, listwatch.Key{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	await("after a deletion", "live", "b\tno")
	(<-watches).Close()
	await("after the connection broke", "reconnecting", "b\tno")
	await("after a reconnect", "live", "b\tno")
}

func hasPrefixes(rows, wants []string) bool {
	for i, want := range wants {
		if !strings.HasPrefix(rows[i], want) {
			return false
		}
	}
	return true
}
