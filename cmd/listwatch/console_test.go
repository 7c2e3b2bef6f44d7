//go:build unix

package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/browsertest"
)

// consoleProbe is a script that runs in the console's page. It follows pods, and posts the contents
// of the page to the test twice a second. It also sets a filter, and ends the watch that the
// filtered table still shows: it gives the button the focus, presses it when the table has been
// filled again, and confirms. The page in the narrow frame runs no probe.
const consoleProbe = `<script type="module">
  const at = (id) => document.getElementById(id);
  const rows = (id) => [...at(id).querySelectorAll("tbody tr")].map((e) => e.innerText.replaceAll("\t", " "));
  let following = false, ended = false, focused = "", names = [], sorts = [], width = 0, frame;
  if (self === top) {
    frame = document.createElement("iframe");
    frame.style.cssText = "width:390px; height:800px; border:0";
    frame.src = "/console/";
    document.body.append(frame);
  }
  const step = () => {
    const button = document.querySelector("#watches tbody button");
    if (ended || rows("objects").length === 0 || !button || !frame.contentDocument?.querySelector("#watches tbody td")) return;
    width = Math.max(width, frame.contentDocument.documentElement.scrollWidth);
    names = [...document.querySelectorAll("#watches tbody button")].map((e) => e.ariaLabel);
    if (!focused) {
      for (const title of ["path", "path"]) {
        [...document.querySelectorAll("#watches th button")].find((e) => e.innerText === title).click();
        sorts.push(document.querySelector("#watches th[aria-sort]").innerText + " " + document.querySelector("#watches th[aria-sort]").ariaSort);
      }
      document.querySelector("#watches tbody button").focus();
      focused = document.activeElement.ariaLabel;
      document.activeElement.wasFilled = true; // a property of the element, which the next filling replaces
    } else if (document.activeElement.ariaLabel === focused && !document.activeElement.wasFilled) {
      document.activeElement.click();
      if (!at("confirm").open || document.activeElement.id !== "cancel") return;
      ended = true;
      at("confirmed").click();
    }
  };
  if (self === top) setInterval(() => {
    if (!following && at("api").value) (following = true), at("source").requestSubmit();
    at("filter").value = "deployments";
    step();
    fetch("/shown", { method: "POST", body: JSON.stringify({
      status: at("status").innerText, collections: rows("collections"), watches: rows("watches"), objects: rows("objects"),
      rate: document.querySelector("#plots path")?.getAttribute("d") ?? "", ended, names, sorts,
      main: document.querySelectorAll("main").length, untitled: [...document.querySelectorAll("th")].filter((e) => !e.innerText.trim()).length,
      width,
    })});
  }, 500);
</script>`

// A consoleView holds the contents of the console's page.
type consoleView struct {
	Status                        string
	Collections, Watches, Objects []string
	Rate                          string // the path of the plot of events per second
	Ended                         bool   // a watch was ended
	Names                         []string
	Sorts                         []string // the order after each press of a title
	Main, Untitled                int      // numbers of main landmarks and of empty titles
	Width                         int      // of the contents in a frame of 390 pixels
}

// openConsole opens the console of a server with --demo and an open watch of a path. It returns
// what the page with the probe shows, and the body of the watch.
func openConsole(ctx context.Context, t *testing.T, probe, path string) (shown <-chan []byte, watch io.Reader) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	browsertest.Path(t)
	debug := new(url.URL)
	proxy, shown := browsertest.Probe(t, debug, "/console/", probe)
	s := startServer(t, "--addr", "127.0.0.1:0", "--debug-addr", "127.0.0.1:0", "--demo", "--allow-origin", proxy.URL,
		"--ttl", "pods=1h")
	u, err := url.Parse(s.debug)
	if err != nil {
		t.Fatal(err)
	}
	*debug = *u
	response, err := http.Get(s.http + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	browsertest.Open(ctx, t, proxy.URL)
	return shown, response.Body
}

func TestConsoleShowsAndEndsWatches(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	shown, watch := openConsole(ctx, t, consoleProbe, "/apis/apps/v1/deployments?watch=true")

	var last consoleView
	await := func(step string, ok func(consoleView) bool) {
		t.Helper()
		for !ok(last) {
			select {
			case text := <-shown:
				last = consoleView{}
				_ = json.Unmarshal(text, &last) // a view that is not JSON is empty
			case <-ctx.Done():
				t.Fatalf("%s: the console shows %+v", step, last)
			}
		}
	}
	await("the watch is open", func(v consoleView) bool {
		return v.Status == "live" && strings.Contains(strings.Join(v.Collections, "\n"), "deployments.v1.apps")
	})
	await("pods have a TTL", func(v consoleView) bool {
		return slices.ContainsFunc(v.Collections, func(line string) bool {
			return strings.HasPrefix(line, "pods.v1") && strings.Contains(line, " with a TTL")
		})
	})
	await("objects come from the API", func(v consoleView) bool { return len(v.Objects) > 0 && v.Ended })
	await("the watch has ended", func(v consoleView) bool { return len(v.Watches) == 0 })
	if _, err := io.Copy(io.Discard, watch); err != nil {
		t.Errorf("the watch ended with %v, want a clean end", err)
	}
	await("the page fits a telephone", func(v consoleView) bool { return v.Width > 0 })
	if last.Width > 390 || last.Main != 1 || last.Untitled != 0 {
		t.Errorf(
			"the page is %d pixels wide on 390, has %d main landmarks and %d titles without a text; want 390, 1 and 0",
			last.Width, last.Main, last.Untitled)
	}
	if want := []string{"path ascending", "path descending"}; !slices.Equal(last.Sorts, want) {
		t.Errorf("pressing a title sorts %q, want %q", last.Sorts, want)
	}
	if len(last.Names) == 0 || len(slices.Compact(slices.Sorted(slices.Values(last.Names)))) != len(last.Names) {
		t.Errorf("the buttons are called %q, want different names", last.Names)
	}
	var rates []string
	await("the plot moves", func(v consoleView) bool {
		// A rate of zero has y = 98 in the path. Count only plots that also have another rate.
		if strings.Count(v.Rate, " ") > 2*strings.Count(v.Rate, " 98") && !slices.Contains(rates, v.Rate) {
			rates = append(rates, v.Rate)
		}
		return len(rates) >= 3
	})
}

// wasteProbe is a script that runs in the console's page. It shows the page in a frame as wide as a
// phone, presses the button that measures a watch, and posts the contents of the frame to the test
// when the table is filled.
const wasteProbe = `<script type="module">
  if (self === top) {
    const frame = document.createElement("iframe");
    frame.style.cssText = "width:390px; height:800px; border:0";
    frame.src = "/console/";
    document.body.append(frame);
    let pressed = "";
    const poll = setInterval(() => {
      const page = frame.contentDocument, at = (id) => page.getElementById(id);
      const button = page?.querySelector('#watches button[aria-label^="measure what watch"]');
      if (!pressed && button && at("api").value) {
        at("seconds").append(new Option("2", 2, true, true));
        button.click();
        pressed = page.activeElement.id;
      }
      const rows = [...at("waste")?.querySelectorAll("tbody tr") ?? []].map((e) => e.innerText.replaceAll("\t", " "));
      if (rows.length === 0) return;
      clearInterval(poll);
      fetch("/shown", { method: "POST", body: JSON.stringify({
        rows, status: at("waste-status").innerText, focus: pressed, width: page.documentElement.scrollWidth,
      })});
    }, 200);
  }
</script>`

func TestConsoleShowsWhatAWatchReceivesInVain(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	shown, _ := openConsole(ctx, t, wasteProbe, "/api/v1/pods?watch=true")
	var got struct {
		Rows          []string
		Status, Focus string
		Width         int
	}
	select {
	case text := <-shown:
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
	case <-ctx.Done():
		t.Fatal("the console shows no savings")
	}
	rows := strings.Join(got.Rows, "\n")
	for _, want := range []string{"fields=-status", "conflate=5s", " %"} {
		if !strings.Contains(rows, want) {
			t.Errorf("the table lacks %q:\n%s", want, rows)
		}
	}
	if !strings.HasPrefix(got.Status, "/api/v1/pods: changes in 2 s: ") || got.Focus != "measure" || got.Width > 390 {
		t.Errorf(
			"the status is %q, the focus is on %q, and the page is %d pixels wide on 390; want the changes, the button, and at most 390",
			got.Status, got.Focus, got.Width)
	}
}

func TestConsoleMeasuresWithTheUsersRights(t *testing.T) {
	s := startServer(t, "--tls-addr", "127.0.0.1:0", "--tls-self-signed", "--token-file", writeFile(t, accessTokens),
		"--debug-addr", "127.0.0.1:0")
	measure := func(collection, seconds, token string) (int, string) {
		query := url.Values{"url": {collection}, "seconds": {seconds}}
		code, _, body := request(t, "GET", s.debug+"/console/waste?"+query.Encode(), "", "Authorization", token)
		return code, body
	}
	pods, ada := s.https+"/api/v1/pods", "Bearer ada-token"
	for _, c := range []struct {
		collection, seconds, token string
		code                       int
		body                       string
	}{
		{
			pods, "1", ada, 200,
			`{"initial":{"events":0,"bytes":0},"changes":{"events":0,"bytes":0},"savings":[{"parameter":"conflate=1s",`,
		},
		{pods, "1", "Bearer unknown", 401, "Unauthorized"},
		{pods, "0", ada, 400, "seconds: must be an integer from 1 to 600"},
		{pods, "601", ada, 400, "seconds: must be"},
		{s.https + "/api/v1/unknown", "1", ada, 404, "NotFound"},
		{"https://127.0.0.1:1/api/v1/pods", "1", ada, 400, "the API of this server"},
		{strings.Replace(pods, "https://", "https://user@", 1), "1", ada, 400, "the API of this server"},
		{pods + "?fields=metadata", "1", ada, 400, "must not have the parameter fields"},
		{pods + "?conflate=1s", "1", ada, 400, "must not have the parameter conflate"},
		{s.https + "/watch?of=/api/v1/pods", "1", ada, 400, "must not have the parameter of"},
	} {
		if code, body := measure(c.collection, c.seconds, c.token); code != c.code || !strings.Contains(body, c.body) {
			t.Errorf("%s for %s s with %s: got %d %s, want %d with %q", c.collection, c.seconds, c.token, code, body,
				c.code, c.body)
		}
	}
}

func TestConsoleMayReadTheAPI(t *testing.T) {
	s := startServer(t, "--addr", "127.0.0.1:0", "--debug-addr", "127.0.0.1:0", "--allow-origin",
		"https://app.example.com")
	for origin, allowed := range map[string]bool{
		s.debug: true, "https://app.example.com": true,
		"http://127.0.0.1:1": false,
	} {
		_, header, _ := request(t, "GET", s.http+"/api/v1/pods", "", "Origin", origin)
		if got := header.Get("Access-Control-Allow-Origin"); (got == origin) != allowed {
			t.Errorf("origin %s: got Access-Control-Allow-Origin %q, want it allowed: %v", origin, got, allowed)
		}
	}
	code, header, _ := request(t, "GET", s.debug+"/console/", "")
	if policy := header.Get("Content-Security-Policy"); code != 200 ||
		!strings.HasSuffix(policy, "connect-src 'self' "+s.http) ||
		!strings.Contains(policy, "img-src data:") { // for the icon
		t.Errorf("got %d and the policy %q, want the page, which may connect to %s", code, policy, s.http)
	}
	for path, want := range map[string]string{
		"/console/api":             `["` + s.http + `"]`,
		"/console/js/listwatch.js": "export", "/console/metrics.js": "export",
	} {
		if code, _, body := request(t, "GET", s.debug+path, ""); code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %.80q, want %q in it", path, code, body, want)
		}
	}
}
