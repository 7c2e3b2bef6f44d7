//go:build unix

package javascript

import (
	"context"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/browsertest"
	"github.com/listwatch/listwatch/internal/testbuild"
	"github.com/listwatch/listwatch/interop/internal/nodetest"
)

const reactDir = "../../examples/dashboard/react"

// reactProbe uses the page as people do. It posts what each frame shows, if it differs from the
// frame before: the status, each flag with + or -, and the problem.
const reactProbe = `<script type="module">
  let shown = "", posts = Promise.resolve();
  const row = (li) => li.innerText.split("\n")[0].trim() + (li.querySelector("input").checked ? "+" : "-");
  const rows = () => [...document.querySelectorAll("li")];
  const look = () => {
    const [status, problem] = ["#status", "[role=alert]"].map((name) => document.querySelector(name)?.innerText);
    const text = [status, rows().map(row).join(" "), problem].join("|");
    const post = () => fetch("/shown", { method: "POST", body: text });
    if (text !== shown) posts = posts.then(post); // one at a time, in order
    shown = text;
    requestAnimationFrame(look);
  };
  look();
  const until = async (want) => {
    while (!shown.startsWith(want) || document.querySelector(".pending")) await new Promise(requestAnimationFrame);
  };
  const add = (name) => {
    document.querySelector("input[name]").value = name;
    document.querySelector("form").requestSubmit();
  };
  await until("live|dark-mode- invoices- new-search-|");
  document.querySelector("input[type=checkbox]").click();
  await until("live|dark-mode+ invoices- new-search-|");
  add("beta");
  await until("live|beta- dark-mode+ invoices- new-search-|");
  rows()[2].querySelector("button").click();
  await until("live|beta- dark-mode+ new-search-|");
  add("beta");
</script>`

// buildReactPage installs the packages of the page and builds it, as docs/browsers.md says.
func buildReactPage(t *testing.T) {
	t.Helper()
	installPackages(t) // skips the test if packages cannot be installed
	if err := nodetest.Install(reactDir); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "npm", "run", "build")
	cmd.Dir = reactDir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm run build: %v\n%s", err, out)
	}
}

func TestReactPageShowsItsWritesAtOnce(t *testing.T) {
	browsertest.Path(t)
	buildReactPage(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dashboard := testbuild.Serve(t, "../../examples/dashboard", "-addr", "127.0.0.1:0", "-react", reactDir+"/dist")
	server, shown := browsertest.Probe(t, dashboard, "/react/", reactProbe)
	var frames []string
	await := func(step, prefix string) {
		t.Helper()
		for len(frames) == 0 || !strings.HasPrefix(frames[len(frames)-1], prefix) {
			select {
			case text := <-shown:
				frames = append(frames, string(text))
			case <-ctx.Done():
				t.Fatalf("%s: the page has shown %q, want %q at last", step, frames, prefix)
			}
		}
	}
	browsertest.Open(ctx, t, server.URL+"/react/")
	await("a name was added twice", "live|beta- dark-mode+ new-search-|TanStack DB error")
	states := slices.Compact(slices.DeleteFunc(slices.Clone(frames), func(frame string) bool {
		return !strings.HasPrefix(frame, "live|") || strings.HasPrefix(frame, "live||")
	}))
	want := []string{
		"live|dark-mode- invoices- new-search-|",
		"live|dark-mode+ invoices- new-search-|",
		"live|beta- dark-mode+ invoices- new-search-|",
		"live|beta- dark-mode+ new-search-|",
		frames[len(frames)-1],
	}
	if !slices.Equal(states, want) {
		t.Errorf("the page showed %q, want %q: a write must neither disappear nor come back", states, want)
	}
	server.CloseClientConnections()
	await("the connections broke", "reconnecting|beta- dark-mode+ new-search-|")
	await("the page has reconnected", "live|beta- dark-mode+ new-search-|")
	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, server.URL+"/flags/beta", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	await("another client wrote", "live|dark-mode+ new-search-|")
}
