//go:build unix

package proxies

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/browsertest"
	"github.com/listwatch/listwatch/js"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// startApps starts a server for pages of the given origins, with objects of two apps at /things. It
// returns its address.
func startApps(t *testing.T, origins ...string) string {
	t.Helper()
	c, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{APIVersion: "v1", Kind: "Thing"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"web", "other"} {
		if _, err := c.Create(t.Context(),
			[]byte(`{"metadata":{"name":"`+name+`","labels":{"app":"`+name+`"}}}`)); err != nil {
			t.Fatal(err)
		}
	}
	server := &watchserver.Server{Source: c}
	s := httptest.NewServer(watchserver.CORS(server, origins))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.Listener.Addr().String()
}

// longSelector is longer than any URL that the server accepts.
func longSelector() string {
	apps := "web"
	for n := range 5_000 {
		apps += fmt.Sprintf(",app-%d", n)
	}
	return "app in (" + apps + ")"
}

// curl sends the selector with QUERY, directly and through each proxy.
func TestQueryPassesProxies(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed")
	}
	query := func(t *testing.T, addr string) {
		t.Helper()
		body := filepath.Join(t.TempDir(), "body")
		cmd := exec.CommandContext(t.Context(), curl, "--silent", "--show-error", "--max-time", "60", "--request",
			"QUERY",
			"--data-urlencode", "labelSelector@-", "--output", body, "--write-out",
			"%{http_code} %header{accept-query}",
			"http://"+addr+"/things")
		cmd.Stdin = strings.NewReader(longSelector())
		out, err := cmd.CombinedOutput()
		if want := "200 application/x-www-form-urlencoded"; err != nil || string(out) != want {
			t.Errorf("got %s, %v, want %s", out, err, want)
		}
		list, err := os.ReadFile(body)
		if err != nil {
			t.Fatal(err)
		}
		if list := string(list); !strings.Contains(list, `"web"`) || strings.Contains(list, `"other"`) {
			t.Errorf("got %s, want the object web only", list)
		}
	}
	server := startApps(t)
	t.Run("none", func(t *testing.T) { query(t, server) })
	for name, p := range proxies {
		t.Run(name, func(t *testing.T) { query(t, p.start(t, server, nil)) })
	}
}

// A page of another origin watches with QUERY, which needs a preflight request: with fetch, and
// with the JavaScript client.
func TestChromiumSendsQuery(t *testing.T) {
	reports := make(chan string, 1)
	var api string
	scripts := http.StripPrefix("/js", js.Handler())
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/js/") {
			scripts.ServeHTTP(w, r)
			return
		}
		if r.Method == http.MethodPost {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				text = []byte(err.Error())
			}
			reports <- string(text)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><script type="module">
import { watch } from "/js/listwatch.js";
const url = "http://%s/things", selector = %q;
const report = (text) => fetch("/", {method: "POST", body: text});
(async () => {
  const response = await fetch(url, {
    method: "QUERY", headers: {"Content-Type": "application/x-www-form-urlencoded"},
    body: new URLSearchParams({watch: true, labelSelector: selector}),
  });
  const {value} = await response.body.pipeThrough(new TextDecoderStream()).getReader().read();
  let transport;
  const events = watch(url, {selector, onState: (state) => transport = state.transport});
  const {value: {type, object}} = await events.next();
  await report([response.headers.get("Accept-Query"), value, transport, type, object.metadata.name].join(" "));
})().catch((e) => report(e.message));
</script>`, api, longSelector())
	}))
	defer page.Close()
	api = startApps(t, page.URL)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	browsertest.Open(ctx, t, page.URL)
	select {
	case got := <-reports:
		if !strings.HasPrefix(got, "application/x-www-form-urlencoded") || !strings.Contains(got, `{"type":"ADDED"`) ||
			!strings.Contains(got, `"web"`) || !strings.HasSuffix(got, " fetch ADDED web") {
			t.Errorf(
				"the page reports %s, want Accept-Query, an ADDED event of the object web, and the same from the client", got)
		}
	case <-time.After(startTimeout):
		t.Error("the page has reported nothing")
	}
}
