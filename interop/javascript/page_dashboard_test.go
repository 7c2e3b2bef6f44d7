//go:build unix

package javascript

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/browsertest"
	"github.com/listwatch/listwatch/internal/testbuild"
)

// probe posts the text of the dashboard whenever it changes, and presses the first button once.
const probe = `<script type="module">
  let shown = "", pressed = false, posts = Promise.resolve();
  const look = () => {
    const text = [document.querySelector("#status"), ...document.querySelectorAll("tbody tr")].map((e) => e.innerText).join("|");
    if (text !== shown) posts = posts.then(() => fetch("/shown", { method: "POST", body: text })); // one at a time, in order
    shown = text;
    const button = document.querySelector("button");
    if (button && !pressed) button.click(), (pressed = true);
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
  look();
</script>`

func TestDashboardShowsTheFlags(t *testing.T) {
	page, err := os.ReadFile("../../examples/dashboard/index.html")
	if lines := bytes.Count(page, []byte("\n")); err != nil || lines > 60 {
		t.Errorf("the page has %d lines, want at most 60 (%v)", lines, err)
	}
	browsertest.Path(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	server, shown := browsertest.Probe(t, testbuild.Serve(t, "../../examples/dashboard", "-addr", "127.0.0.1:0"),
		"/", probe)
	await := func(step, status, flags string) {
		t.Helper()
		for last := ""; !strings.HasPrefix(last, status) || !strings.Contains(last, flags); {
			select {
			case text := <-shown:
				last = string(text)
			case <-ctx.Done():
				t.Fatalf("%s: the page shows %q, want %q and %q", step, last, status, flags)
			}
		}
	}
	browsertest.Open(ctx, t, server.URL)
	await("the button was pressed", "live|dark-mode\tyes", "|invoices\tno")
	server.CloseClientConnections()
	await("the connections broke", "reconnecting", "|dark-mode\tyes")
	await("the page has reconnected", "live", "|dark-mode\tyes")
	patch := strings.NewReader(`{"enabled":true}`)
	r, err := http.NewRequestWithContext(ctx, http.MethodPatch, server.URL+"/flags/invoices", patch)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/merge-patch+json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	await("another client wrote", "live", "|invoices\tyes")
}
