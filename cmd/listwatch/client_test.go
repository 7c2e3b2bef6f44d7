package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/internal/ports"
)

// runCommand runs a command to its end and returns its output. It fails the test if the exit code
// differs from code.
func runCommand(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	p := start(t, args...)
	if got := p.exit(t); got != code {
		t.Fatalf("%s: exit code %d, stderr %s; want exit code %d", strings.Join(args, " "), got, p.stderr, code)
	}
	return p.stdout.String(), p.stderr.String()
}

// writeHistory creates, updates and deletes pods. It returns the number of events that a
// watch receives if it starts at the version before these writes.
func writeHistory(t *testing.T, base string) int {
	t.Helper()
	const objects = 20
	for i := range objects {
		name := fmt.Sprintf("pod-%d", i)
		create(t, base, podsPath, name)
		body := fmt.Sprintf(
			`{"metadata":{"name":%q,"labels":{"n":"%d"}},"text":"grüße \u00fc 😀 <&>","n":[12345678901234567890123,1e300,-0.10]}`, name, i)
		if code, _, response := request(t, "PUT", base+podsPath+"/"+name, body); code != 200 {
			t.Fatalf("PUT %s: got %d %s", name, code, response)
		}
		if i%2 == 0 {
			request(t, "DELETE", base+podsPath+"/"+name, "")
		}
	}
	return 2*objects + objects/2
}

func TestWatchIsIdenticalOverAllTransports(t *testing.T) {
	s := startServer(t, "--addr", "127.0.0.1:0", "--tls-addr", "127.0.0.1:0", "--tls-self-signed")
	var list struct{ Metadata listwatch.Metadata }
	_, _, body := request(t, "GET", s.http+"/api/v1/pods", "")
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	from := list.Metadata.ResourceVersion
	type run struct {
		name    string
		program *program
	}
	var runs []run
	for _, url := range []string{s.http, s.https} {
		for _, transport := range []string{"auto", "chunked", "h2", "websocket"} {
			args := []string{
				"watch", "pods", "-A", "--insecure-skip-verify", "-o", "json", "--resource-version", from,
				"--server", url, "--transport", transport,
			}
			runs = append(runs, run{url + " " + transport, start(t, args...)})
		}
	}
	for _, transport := range []string{"chunked", "h2", "websocket"} {
		args := []string{
			"watch", "pods", "-A", "--compress", "-o", "json", "--resource-version", from, "--server",
			s.http, "--transport", transport,
		}
		runs = append(runs, run{"compressed, " + transport, start(t, args...)})
	}
	for _, framing := range []string{"json", "sse", "seq", "prefixed"} {
		runs = append(runs, run{
			framing,
			start(t, "watch", s.http+"/api/v1/pods?watch=true&resourceVersion="+from, "-o", "json", "--framing",
				framing),
		})
	}
	n := writeHistory(t, s.http)
	_, _, wire := request(t, "GET", s.http+"/api/v1/pods?watch=true&timeoutSeconds=1&resourceVersion="+from, "")
	want := strings.Split(strings.TrimSuffix(wire, "\n"), "\n")
	if len(want) != n {
		t.Fatalf("a watch with HTTP returned %d events, want %d", len(want), n)
	}
	for _, r := range runs {
		if got := r.program.stdout.lines(t, n, r.program.ended); !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", r.name, strings.Join(got, "\n"), wire)
		}
		r.program.interrupt()
		if code := r.program.exit(t); code != cli.ExitOK || r.program.stderr.String() != "" {
			t.Errorf("%s: after the interrupt: exit code %d, stderr %q; want 0 and no output", r.name, code,
				r.program.stderr)
		}
	}
}

func TestWatchStartsWithStateAndExitsAfterCount(t *testing.T) {
	s := startServer(t)
	create(t, s.http, podsPath, "one")
	create(t, s.http, "/api/v1/namespaces/other/pods", "two")
	for _, c := range []struct {
		args string
		want []string
	}{
		{"pods -A", []string{"ADDED default/one", "ADDED other/two"}},
		{"po", []string{"ADDED default/one"}},
		{"pod -n other", []string{"ADDED other/two"}},
		{"pods two -A", []string{"ADDED other/two"}},
		{"pods/one", []string{"ADDED default/one"}},
		{"pods -A --field-selector metadata.namespace=other", []string{"ADDED other/two"}},
		{"pods -A --framing cbor", []string{"ADDED default/one", "ADDED other/two"}},
		{"pods -A --bookmarks", []string{"ADDED default/one", "ADDED other/two", "BOOKMARK -"}},
		{"pods -A -o wide", []string{"ADDED default/one", "ADDED other/two"}},
		{"pods.v1 -A", []string{"ADDED default/one", "ADDED other/two"}},
	} {
		args := append([]string{"watch"}, strings.Fields(c.args)...)
		out, _ := runCommand(t, cli.ExitOK,
			append(args, "--server", s.http, "--exit-after", fmt.Sprint(len(c.want)))...)
		var got []string
		for line := range strings.Lines(out) {
			got = append(got, strings.Join(strings.Fields(line)[:2], " "))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.args, got, c.want)
		}
	}
	for _, url := range []string{
		s.http + "/api/v1/pods?watch=true",
		strings.TrimPrefix(s.http, "http://") + "/api/v1/watch/pods?watch=yes",
	} {
		if out, _ := runCommand(t, cli.ExitOK, "watch", url, "--exit-after", "2", "-o",
			"name"); out != "default/one\nother/two\n" {
			t.Errorf("%s: got %q, want both objects", url, out)
		}
	}
}

func TestGet(t *testing.T) {
	s := startServer(t, "--resource", "widgets.v1.demo.example.com=Widget", "--resource",
		"gadgets.v1.demo.example.com=Gadget,cluster")
	create(t, s.http, podsPath, "one")
	create(t, s.http, "/api/v1/namespaces/other/pods", "two")
	create(t, s.http, "/apis/demo.example.com/v1/namespaces/default/widgets", "w")
	create(t, s.http, "/apis/demo.example.com/v1/gadgets", "g")
	create(t, s.http, "/apis/apps/v1/namespaces/default/deployments", "d")
	create(t, s.http, "/api/v1/namespaces", "n")
	for _, c := range []struct{ args, want string }{
		{"pods -o name", "default/one\n"},
		{"pods -A -o name", "default/one\nother/two\n"},
		{"pods two -n other -o name", "other/two\n"},
		{"deployments.apps -o name", "default/d\n"},
		{"deploy d -o name", "default/d\n"},
		{"ns -o name", "n\n"},
		{"cm -o name", ""},
		{"widgets.v1.demo.example.com -o name", "default/w\n"},
		{"gadgets.v1.demo.example.com -o name", "g\n"},
		{"gadgets.v1.demo.example.com g -o name", "g\n"},
		{"gadgets.v1.demo.example.com -A -o name", "g\n"},
		{"pods -l a=b -o name", ""},
	} {
		out, _ := runCommand(t, cli.ExitOK, append([]string{"get", "--server", s.http}, strings.Fields(c.args)...)...)
		if out != c.want {
			t.Errorf("%s: got %q, want %q", c.args, out, c.want)
		}
	}
	table, _ := runCommand(t, cli.ExitOK, "get", "pods", "-A", "--server", s.http, "-o", "wide")
	lines := strings.Split(table, "\n")
	if got := strings.Fields(lines[0]); !slices.Equal(got, []string{"NAMESPACE", "NAME", "VERSION", "AGE", "LABELS"}) ||
		!strings.HasPrefix(lines[2], "other       two") {
		t.Errorf("got the wrong table:\n%s", table)
	}
	_, _, raw := request(t, "GET", s.http+podsPath+"/one", "")
	if out, _ := runCommand(t, cli.ExitOK, "get", "pods", "one", "--server", s.http, "-o", "json"); out != raw {
		t.Errorf("got %s, want exactly the server's bytes: %s", out, raw)
	}
	for _, fields := range []string{"metadata.uid", "-metadata.creationTimestamp"} {
		out, _ := runCommand(t, cli.ExitOK, "get", "pods", "one", "--server", s.http, "-o", "json", "--fields", fields)
		if !strings.Contains(out, `"name":"one"`) || strings.Contains(out, "creationTimestamp") ||
			!strings.Contains(raw, "creationTimestamp") {
			t.Errorf("--fields %s: got %s from %s, want it without the creationTimestamp", fields, out, raw)
		}
	}
	out, _ := runCommand(t, cli.ExitOK, "get", "pods", "-A", "--server", s.http, "-o", "json")
	var list struct {
		Kind  string
		Items []json.RawMessage
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || list.Kind != "List" || len(list.Items) != 2 {
		t.Errorf("got %s, %v, want a List with two items", out, err)
	}
}

func TestCredentialsAreSent(t *testing.T) {
	c := makeCertificates(t)
	s := startServer(t, "--addr", "127.0.0.1:0", "--tls-addr", "127.0.0.1:0", "--tls-cert", c.server, "--tls-key",
		c.serverKey, "--client-ca", c.ca,
		"--token-file", writeFile(t, "secret,ada,1"))
	create := func(url string) {
		if code, _, body := request(t, "POST", url+podsPath, object("one"), "Authorization",
			"Bearer secret"); code != 201 {
			t.Fatalf("create a pod: got %d %s", code, body)
		}
	}
	create(s.http)
	for _, args := range []string{
		"--server " + s.http + " --token secret",
		"--server " + s.https + " --token secret --ca " + c.ca,
		"--server " + s.https + " --ca " + c.ca + " --cert " + c.client + " --key " + c.clientKey,
		"--server " + s.https + " --insecure-skip-verify --cert " + c.client + " --key " + c.clientKey,
	} {
		if out, _ := runCommand(t, cli.ExitOK,
			append([]string{"get", "pods", "-o", "name"}, strings.Fields(args)...)...); out != "default/one\n" {
			t.Errorf("get %s: got %q", args, out)
		}
		for _, transport := range []string{"chunked", "h2", "websocket"} {
			all := append([]string{"watch", "pods", "-o", "name", "--exit-after", "1", "--transport", transport},
				strings.Fields(args)...)
			if out, _ := runCommand(t, cli.ExitOK, all...); out != "default/one\n" {
				t.Errorf("watch %s over %s: got %q", args, transport, out)
			}
		}
	}
	for _, args := range []string{
		"watch pods --server " + s.http,
		"get pods --server " + s.http + " --token wrong",
		"watch pods --transport websocket --server " + s.https + " --ca " + c.ca,
	} {
		if _, stderr := runCommand(t, cli.ExitFailure, strings.Fields(args)...); !strings.Contains(stderr,
			"unauthorized") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: got %q, want one line that contains \"unauthorized\"", args, stderr)
		}
	}
	if _, stderr := runCommand(t, cli.ExitFailure, "get", "pods", "--token", "secret", "--server",
		s.https); !strings.Contains(stderr, "--ca") {
		t.Errorf("got %q, want a message that mentions --ca", stderr)
	}
}

func object(name string) string { return `{"metadata":{"name":"` + name + `"}}` }

func TestWatchPrintsWaste(t *testing.T) {
	s := startServer(t, "--addr", "127.0.0.1:0")
	if code, _, body := request(t, "POST", s.http+podsPath, object("one")); code != 201 {
		t.Fatalf("create a pod: got %d %s", code, body)
	}
	out, _ := runCommand(t, cli.ExitOK, "watch", "pods", "--server", s.http, "--waste", "100ms")
	for _, want := range []string{"initial events: 1, ", "fields=-metadata.creationTimestamp\n", "conflate=1s\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("got %q, want %q", out, want)
		}
	}
}

func TestGetAndWatchErrorsAreOneLine(t *testing.T) {
	// No other server or connection gets this port after the server has stopped.
	s := startServer(t, "--addr", ports.Address(t))
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"get pods absent", cli.ExitFailure, `pods "absent" not found`},
		{"get pods -l !!", cli.ExitUsage, "!!"},
		{"get pods --field-selector x", cli.ExitUsage, "field"},
		{"get pods --fields a..b", cli.ExitUsage, `path "a."`},
		{"get pods --fields -kind", cli.ExitUsage, "always shown"},
		{"watch pods --conflate 61s", cli.ExitUsage, "a duration from 0 to 60s"},
		{"watch pods --waste 1s --fields spec", cli.ExitUsage, "does not apply to --waste"},
		{"watch pods --waste -1s", cli.ExitUsage, "positive"},
		{"get pods --field-selector spec.x=1", cli.ExitFailure, "spec.x"},
		{"get widgets", cli.ExitUsage, "must be pods"},
		{"get widgets.v1.demo", cli.ExitFailure, "could not find"},
		{"watch widgets.v1.demo", cli.ExitFailure, "could not find"},
		{"get pods -o yaml", cli.ExitUsage, "json, name or wide"},
		{"get pods -n Bad_Name", cli.ExitUsage, "Bad_Name"},
		{"get pods -n a -A", cli.ExitUsage, "not both"},
		{"get pods --cert x", cli.ExitUsage, "must be set together"},
		{"get pods --ca absent", cli.ExitFailure, "absent"},
		{"get", cli.ExitUsage, "arg"},
		{"watch pods --transport pigeon", cli.ExitUsage, "chunked"},
		{"watch pods --framing morse", cli.ExitUsage, "cbor"},
		{"watch pods --exit-after -1", cli.ExitUsage, "negative"},
		{"watch pods --resource-version x", cli.ExitUsage, "decimal"},
		{"watch pods --resource-version 1", cli.ExitFailure, "watch again without --resource-version"},
		{"watch pods --resource-version 18446744073709551615", cli.ExitFailure, "not yet"},
		{"nonsense", cli.ExitUsage, `unknown command "nonsense"`},
	} {
		args := strings.Fields(c.args)
		if args[0] == "get" || args[0] == "watch" {
			args = append(args, "--server", s.http)
		}
		_, stderr := runCommand(t, c.code, args...)
		if !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 ||
			!strings.HasPrefix(stderr, "listwatch: ") {
			t.Errorf("%s: got %q, want one line with %q", c.args, stderr, c.want)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"watch http://127.0.0.1:1/x one", "field-selector"},
		{"watch http://127.0.0.1:1/x -n a", "URL"},
		{"watch ftp://127.0.0.1/x", "http://"},
		{"watch http:///x", "http://"},
	} {
		if _, stderr := runCommand(t, cli.ExitUsage, strings.Fields(c.args)...); !strings.Contains(stderr, c.want) {
			t.Errorf("%s: got %q, want %q", c.args, stderr, c.want)
		}
	}
	s.interrupt()
	s.exit(t)
	for _, verb := range []string{"get", "watch"} {
		if _, stderr := runCommand(t, cli.ExitFailure, verb, "pods", "--server", s.http); !strings.Contains(stderr,
			"listwatch serve") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s without a server: got %q, want one line that suggests listwatch serve", verb, stderr)
		}
	}
}

func TestVersionAndHelpSucceed(t *testing.T) {
	if out, _ := runCommand(t, cli.ExitOK, "version"); !strings.HasPrefix(out, "listwatch ") {
		t.Errorf("version: got %q, want it to begin with the program's name", out)
	}
	for _, args := range [][]string{nil, {"--help"}, {"serve", "--help"}, {"help", "watch"}} {
		if out, _ := runCommand(t, cli.ExitOK, args...); !strings.Contains(out, "Usage:") {
			t.Errorf("%v: got %q, want the usage text", args, out)
		}
	}
}

func TestWatchInformerShowsItsStore(t *testing.T) {
	s := startServer(t, "--addr", "127.0.0.1:0")
	create(t, s.http, podsPath, "one")
	p := start(t, "watch", "pods", "--informer", "--server", s.http)
	wants := func(what string) {
		t.Helper()
		p.stdout.await(t, what, p.ended, func(text string) bool { return strings.Contains(text, what) })
	}
	wants("1 objects at version")
	create(t, s.http, podsPath, "two")
	wants("2 objects at version")
	request(t, "DELETE", s.http+podsPath+"/one", "")
	wants("+1 ~0 -1 since")
	p.interrupt()
	if code := p.exit(t); code != cli.ExitOK || p.stderr.String() != "" {
		t.Errorf("after the interrupt: exit code %d, stderr %q; want 0 and no output", code, p.stderr)
	}
	if _, stderr := runCommand(t, cli.ExitUsage, "watch", "pods", "--informer", "-o", "json"); !strings.Contains(stderr,
		"--output") {
		t.Errorf("-o with --informer: got %q, want a message that mentions --output", stderr)
	}
	_, stderr := runCommand(t, cli.ExitFailure, "watch", s.http+"/api/v1/nothing", "--informer")
	if !strings.Contains(stderr, "not found") {
		t.Errorf("a collection that does not exist: got %q, want \"not found\"", stderr)
	}
}

// A countingProxy forwards connections to a server, and counts the bytes that it sends back.
type countingProxy struct {
	addr string
	sent atomic.Int64
}

// Write counts bytes before they are forwarded.
func (p *countingProxy) Write(b []byte) (int, error) {
	p.sent.Add(int64(len(b)))
	return len(b), nil
}

func startCountingProxy(t *testing.T, target string) *countingProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &countingProxy{addr: "http://" + l.Addr().String()}
	var open sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		open.Wait()
	})
	open.Go(func() { // until l is closed
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				in.Close()
				continue
			}
			open.Go(func() { // until the client closes the connection
				_, _ = io.Copy(out, in) // a broken connection has the same meaning
				out.Close()
			})
			open.Go(func() { // until either end closes the connection
				_, _ = io.Copy(in, io.TeeReader(out, p)) // as above
				in.Close()
			})
		}
	})
	return p
}

// TestRestartedWatchPrintsWhatChanged kills a watch, and the server of which it has printed the
// state, and changes three of a thousand objects.
func TestRestartedWatchPrintsWhatChanged(t *testing.T) {
	address := ports.Address(t)
	data, file := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "position")
	serve := func() *runningServer {
		return startServer(t, "--addr", address, "--data", data, "--history-bytes", "1")
	}
	proxy := startCountingProxy(t, address)
	watch := func(lines int) ([]string, *program) {
		t.Helper()
		w := start(t, "watch", "pods", "--server", proxy.addr, "--persist", file)
		return w.stdout.lines(t, lines, w.ended), w
	}
	end := func(w *program) (bytes int64) {
		t.Helper()
		w.interrupt()
		if code := w.exit(t); code != 0 {
			t.Fatalf("exit code %d, %s", code, w.stderr)
		}
		return proxy.sent.Swap(0)
	}
	const objects = 1000
	s := serve()
	for i := range objects {
		create(t, s.http, podsPath, fmt.Sprint("pod-", i))
	}
	_, first := watch(objects)
	create(t, s.http, podsPath, "extra")
	first.stdout.lines(t, objects+1, first.ended) // so Synced has arrived, too
	whole := end(first)
	s.interrupt()
	s.exit(t)

	s = serve()
	create(t, s.http, podsPath, "new")
	request(t, "DELETE", s.http+podsPath+"/pod-1", "")
	request(t, "PUT", s.http+podsPath+"/pod-2", `{"metadata":{"name":"pod-2","labels":{"a":"b"}}}`)
	lines, second := watch(4)
	var got []string
	for _, line := range lines {
		got = append(got, strings.Join(strings.Fields(line)[:2], " "))
	}
	slices.Sort(got)
	// Another change could have had the version of the last event, so that event is repeated.
	if want := []string{
		"ADDED default/extra", "ADDED default/new", "ADDED default/pod-2",
		"DELETED default/pod-1",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if difference := end(second); difference > 4000 || whole < 50*difference {
		t.Errorf("the second run received %d bytes, the first %d", difference, whole)
	}
}

func TestPositionOfAnotherCollectionIsNotUsed(t *testing.T) {
	s := startServer(t)
	create(t, s.http, podsPath, "one")
	file := filepath.Join(t.TempDir(), "position")
	for range 2 {
		for _, namespace := range []string{"default", "other"} {
			w := start(t, "watch", "pods", "--server", s.http, "-n", namespace, "--persist", file, "--bookmarks")
			w.stdout.lines(t, 1, w.ended)
			w.interrupt()
			if w.exit(t); (namespace == "default") != strings.Contains(w.stdout.String(), "default/one") {
				t.Errorf("namespace %s: got %s%s", namespace, w.stdout, w.stderr)
			}
		}
	}
	runCommand(t, cli.ExitUsage, "watch", "pods", "--server", s.http, "--persist", file, "--resource-version", "1")
}
