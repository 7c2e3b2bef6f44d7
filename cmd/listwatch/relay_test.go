package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

// startRelay runs relay on free ports and waits until it listens.
func startRelay(t *testing.T, args ...string) *runningServer {
	t.Helper()
	r := &runningServer{program: start(t,
		append([]string{"relay", "--addr", "127.0.0.1:0", "--debug-addr", "127.0.0.1:0"}, args...)...)}
	text := r.stdout.await(t, "addresses", r.ended, func(text string) bool { return strings.Count(text, "\n\n") >= 4 })
	for line := range strings.Lines(text) {
		if url, ok := strings.CutPrefix(line, "Relaying on "); ok {
			r.http, _, _ = strings.Cut(url, " ")
		}
		if url, ok := strings.CutPrefix(line, "Debug endpoints and the console on "); ok {
			r.debug, _, _ = strings.Cut(url, ",")
		}
	}
	return r
}

// requireStatus sends a request, requires a status code, and returns the body. It repeats the
// request after 503 and 504, which a relay returns if its upstream needs more than three seconds,
// as on a busy machine.
func requireStatus(t *testing.T, code int, method, url string, header ...string) string {
	t.Helper()
	for late := time.Now().Add(testTimeout); ; {
		got, _, body := request(t, method, url, "", header...)
		switch {
		case got == code:
			return body
		case got != http.StatusServiceUnavailable && got != http.StatusGatewayTimeout || time.Now().After(late):
			t.Fatalf("%s %s: got %d %s, want %d", method, url, got, body, code)
		}
	}
}

const widgetsPath = "/apis/demo.example.com/v1/namespaces/default/widgets"

func TestRelayServesResourcesReadOnly(t *testing.T) {
	origin := startServer(t, "--resource", "widgets.v1.demo.example.com=Widget", "--resource",
		"zones.v1.demo.example.com=Zone,cluster")
	create(t, origin.http, podsPath, "one")
	create(t, origin.http, "/apis/demo.example.com/v1/zones", "north")
	r := startRelay(t, "--upstream", origin.http, "--resource", "pods", "--resource", "widgets.v1.demo.example.com",
		"--resource", "zones.v1.demo.example.com")

	// An acknowledged write must be visible in the relay immediately.
	for i := range 20 {
		name := fmt.Sprint("w-", i)
		create(t, origin.http, widgetsPath, name)
		requireStatus(t, 200, "GET", r.http+widgetsPath+"/"+name)
	}
	for path, text := range map[string]string{
		podsPath:                                      `"name":"one"`,
		podsPath + "/one":                             `"name":"one"`,
		"/apis/demo.example.com/v1/zones/north":       `"kind":"Zone"`,
		"/apis/demo.example.com/v1/zones?limit=1":     `"kind":"ZoneList"`,
		podsPath + "?fieldSelector=status.phase=None": `"items":[]`,
	} {
		if body := requireStatus(t, 200, "GET", r.http+path); !strings.Contains(body, text) {
			t.Errorf("%s: got %s, want %s", path, body, text)
		}
	}
	// The requests above have read every collection, so the relay has loaded all of them.
	requireStatus(t, 200, "GET", r.http+"/readyz")
	if here, there := requireStatus(t, 200, "GET", r.http+podsPath+"/one"),
		requireStatus(t, 200, "GET", origin.http+podsPath+"/one"); here != there {
		t.Errorf("the relay returned %s, but the upstream %s", here, there)
	}
	if discovery := requireStatus(t, 200, "GET", r.http+"/apis/demo.example.com/v1"); !strings.Contains(discovery,
		`"verbs":["get","list","watch"]`) ||
		!strings.Contains(discovery, `"kind":"Widget"`) || strings.Contains(discovery, `"patch"`) {
		t.Errorf("got %s, want two read-only resources", discovery)
	}
	requireStatus(t, 405, "POST", r.http+podsPath)
	requireStatus(t, 405, "DELETE", r.http+podsPath+"/one")
	requireStatus(t, 404, "GET", r.http+"/api/v1/services")

	w := start(t, "watch", "pods", "--server", r.http, "--exit-after", "2", "-o", "name")
	w.stdout.lines(t, 1, w.ended)
	create(t, origin.http, podsPath, "two")
	if got := w.stdout.lines(t, 2, w.ended); got[0] != "default/one" || got[1] != "default/two" {
		t.Errorf("a watch of the relay received %q, want both pods", got)
	}
	var status struct {
		Relays []struct {
			Name    string
			Ready   bool
			Objects int
		}
	}
	if err := json.Unmarshal([]byte(requireStatus(t, 200, "GET", r.debug+"/debug/relays")), &status); err != nil {
		t.Fatal(err)
	}
	if len(status.Relays) != 3 || !status.Relays[0].Ready || status.Relays[0].Name != "pods" ||
		status.Relays[0].Objects != 2 {
		t.Errorf("got %+v, want three relays, and two objects in the relay of pods", status.Relays)
	}
}

func TestKilledRelayServesItsCopy(t *testing.T) {
	origin := startServer(t)
	create(t, origin.http, podsPath, "one")
	args := []string{
		"relay", "--addr", "127.0.0.1:0", "--upstream", origin.http, "--resource", "pods.v1=Pod", "--persist",
		t.TempDir(),
		"--backfill", "-1", // so that the state is identified before the first bookmark
	}
	run := func() (p *process, pods string) {
		t.Helper()
		p = startProcess(t, nil, args...)
		text := p.stdout.await(t, "address; stderr: "+p.stderr.String(), p.ended,
			func(text string) bool { return strings.Contains(text, "\n\n") })
		_, url, _ := strings.Cut(text, "Relaying on ")
		url, _, _ = strings.Cut(url, " ")
		return p, requireStatus(t, 200, "GET", url+podsPath+"?resourceVersion=0")
	}
	first, want := run()
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, stderr := first.exit(); code != 0 || !strings.Contains(want, `"name":"one"`) {
		t.Fatalf("exit code %d, %s; the relay served %s", code, stderr, want)
	}
	origin.interrupt()
	origin.exit(t)
	for range 2 { // the file survives a process that is killed
		p, got := run()
		if got != want {
			t.Errorf("a relay without its upstream served %s, want %s", got, want)
		}
		p.kill()
	}
}

func TestRelaysCanBeChained(t *testing.T) {
	tokens := writeFile(t, "secret,ada,1")
	origin := startServer(t, "--token-file", tokens)
	first := startRelay(t, "--upstream", origin.http, "--upstream-token-file", writeFile(t, "secret\n"), "--resource",
		"configmaps", "--token-file", tokens)
	second := startRelay(t, "--upstream", first.http, "--upstream-token", "secret", "--resource", "cm")
	const path = "/api/v1/namespaces/default/configmaps"
	requireStatus(t, 401, "GET", first.http+path)
	if code, _, body := request(t, "POST", origin.http+path, `{"metadata":{"name":"a"}}`, "Authorization",
		"Bearer secret"); code != 201 {
		t.Fatalf("create: got %d %s, want 201", code, body)
	}
	requireStatus(t, 200, "GET", first.http+path+"/a", "Authorization", "Bearer secret")
	requireStatus(t, 200, "GET", second.http+path+"/a")
	first.interrupt()
	if code := first.exit(t); code != 0 {
		t.Errorf("the first relay: exit code %d, want 0: %s", code, first.stderr)
	}
	// Reads from the cache still succeed. A consistent read needs the upstream.
	requireStatus(t, 200, "GET", second.http+path+"?resourceVersion=0")
	requireStatus(t, 200, "GET", second.http+path+"/a?resourceVersion=0")
	requireStatus(t, 503, "GET", second.http+path)
}

func TestRelayServesSingleCollection(t *testing.T) {
	type flag struct {
		listwatch.Metadata `json:"metadata"`
	}
	flags := memory.New[flag]()
	if _, err := flags.Create(t.Context(), flag{listwatch.Metadata{Name: "dark"}}); err != nil {
		t.Fatal(err)
	}
	origin := httptest.NewServer(&watchserver.Server{Source: flags})
	defer origin.Close()
	for _, credentials := range []bool{false, true} {
		args := []string{"--upstream", origin.URL + "/things/flags"}
		if credentials {
			args = append(args, "--token-file", writeFile(t, "secret,ada,1"))
		}
		r := startRelay(t, args...)
		header := []string{"Authorization", "Bearer secret"}
		if body := requireStatus(t, 200, "GET", r.http+"/things/flags", header...); !strings.Contains(body,
			`"name":"dark"`) {
			t.Errorf("got %s, want a list with the flag", body)
		}
		if body := requireStatus(t, 200, "GET", r.http+"/things/flags?watch=1&timeoutSeconds=1",
			header...); !strings.Contains(body, `"ADDED"`) {
			t.Errorf("got %s, want an ADDED event for the flag", body)
		}
		if credentials {
			requireStatus(t, 401, "GET", r.http+"/things/flags")
			requireStatus(t, 401, "GET", r.http+"/things/flags", "Authorization", "Bearer other")
		}
		requireStatus(t, 200, "GET", r.http+"/readyz")
		requireStatus(t, 404, "GET", r.http+"/")
		r.interrupt()
		if code := r.exit(t); code != 0 {
			t.Errorf("exit code %d, want 0: %s", code, r.stderr)
		}
	}
}

func TestRelayErrors(t *testing.T) {
	origin := startServer(t)
	trusted := httptest.NewTLSServer(http.NotFoundHandler())
	defer trusted.Close()
	trusted.Config.ErrorLog = log.New(io.Discard, "", 0) // do not log refused handshakes
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", cli.ExitUsage, "--upstream or --kubeconfig"},
		{"--upstream " + origin.http, cli.ExitUsage, "URL of a collection"},
		{"--upstream ftp://x/y", cli.ExitUsage, "must be an http or https URL"},
		{
			"--cluster https://x", cli.ExitUsage,
			`unexpected argument "https://x": --cluster takes no value; usage: listwatch relay (--upstream URL | --kube`,
		},
		{"--upstream " + origin.http + " --resource nothings", cli.ExitUsage, `unknown resource "nothings"`},
		{
			"--upstream " + origin.http + " --resource nothings.v1.example.com", cli.ExitFailure,
			"the server has no nothings in example.com/v1",
		},
		{"--upstream " + origin.http + " --resource pods --resource po", cli.ExitUsage, "given twice"},
		{
			"--upstream http://127.0.0.1:1 --resource pods", cli.ExitFailure,
			"connection refused; no server is running there: start one with \"listwatch serve\", or name another with --upstream\n",
		},
		{
			"--upstream " + strings.Replace(origin.http, "http", "https", 1) + " --resource pods", cli.ExitFailure,
			"try http:// instead",
		},
		{"--upstream " + trusted.URL + " --resource pods", cli.ExitFailure, "pass its CA with --upstream-ca"},
		{
			"--upstream " + origin.http + " --resource pods --upstream-cert x", cli.ExitUsage,
			"--upstream-cert and --upstream-key must be set together",
		},
		{
			"--upstream " + origin.http + " --resource pods --upstream-token x --upstream-token-file y", cli.ExitUsage,
			"not both",
		},
		{
			"--upstream " + origin.http + " --resource pods --upstream-token-file /nowhere", cli.ExitFailure,
			"--upstream-token-file /nowhere",
		},
		{
			"--upstream " + origin.http + " --resource pods --upstream-transport pigeon", cli.ExitUsage,
			"--upstream-transport",
		},
		{"--kubeconfig /nowhere --resource pods", cli.ExitFailure, "--kubeconfig"},
		{
			"--upstream " + origin.http + " --resource pods --addr 0.0.0.0:0", cli.ExitFailure,
			"refusing to listen beyond loopback",
		},
	} {
		t.Run(c.args, func(t *testing.T) {
			p := start(t, append([]string{"relay", "--addr", "127.0.0.1:0"}, strings.Fields(c.args)...)...)
			if code := p.exit(t); code != c.code || !strings.Contains(p.stderr.String(), c.want) {
				t.Errorf("exit code %d, stderr %s\nwant exit code %d and %s", code, p.stderr, c.code, c.want)
			}
		})
	}
}
