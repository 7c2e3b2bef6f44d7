package main

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/internal/h2websocket"
	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/transport"
	"github.com/listwatch/listwatch/transport/websocket"
)

func TestCurlWatches(t *testing.T) {
	c := makeCertificates(t)
	s := startServer(t, "--addr", "127.0.0.1:0", "--tls-addr", "127.0.0.1:0", "--tls-cert", c.server, "--tls-key",
		c.serverKey,
		"--client-ca", c.ca, "--allow-origin", "http://127.0.0.1:*")
	const deployments = "/apis/apps/v1/namespaces/default/deployments"
	create(t, s.http, podsPath, "before")
	create(t, s.http, deployments, "before")
	credentials := fmt.Sprintf("--cert %s --key %s", c.client, c.clientKey)
	const upgrade = ` -i -N --http1.1 -H "Connection: Upgrade" -H "Upgrade: websocket" -H "Sec-WebSocket-Version: 13" -H "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="`
	for _, line := range []struct{ what, line, head string }{
		{
			"deployments", `curl -i "` + strings.TrimPrefix(s.http, "http://") + deployments + `?watch=true"`,
			"HTTP/1.1 200 OK",
		},
		{"path form", `curl -i "` + s.http + `/api/v1/watch/pods?watch=yes"`, "HTTP/1.1 200 OK"},
		{
			"TLS, HTTP/1.1", `curl -ik --http1.1 ` + credentials + ` "` + s.https + `/api/v1/pods?watch=true"`,
			"HTTP/1.1 200 OK",
		},
		{"TLS, HTTP/2", `curl -ik --http2 ` + credentials + ` "` + s.https + `/api/v1/pods?watch=true"`, "HTTP/2 200"},
		{"compressed", `curl -i --compressed "` + s.http + `/api/v1/pods?watch=true"`, "HTTP/1.1 200 OK"},
		{"compressed with gzip", `curl -i --compressed -H "Accept-Encoding: gzip" "` + s.http +
			`/api/v1/pods?watch=true"`, "HTTP/1.1 200 OK"},
		{
			"compressed, HTTP/2",
			`curl -i --compressed --http2-prior-knowledge "` + s.http + `/api/v1/pods?watch=true"`,
			"HTTP/2 200",
		},
		{"clear text, HTTP/2", `curl -i --http2-prior-knowledge "` + s.http + `/api/v1/pods?watch=true"`, "HTTP/2 200"},
		{"WebSocket", `curl` + upgrade + ` "` + s.http + `/api/v1/pods?watch=true"`, "HTTP/1.1 101"},
		{"WebSocket from a page", `curl` + upgrade + ` -H "Origin: http://127.0.0.1:3000" "` + s.http +
			`/api/v1/pods?watch=true"`, "HTTP/1.1 101"},
		{
			"WebSocket, TLS", `curl -k ` + credentials + upgrade + ` "` + s.https + `/api/v1/pods?watch=true"`,
			"HTTP/1.1 101",
		},
	} {
		t.Run(line.what, func(t *testing.T) {
			out, ended := curl(t, line.line)
			text := out.await(t, "state", ended,
				func(text string) bool { return strings.Contains(text, `"name":"before"`) })
			if !strings.HasPrefix(text, line.head) {
				t.Errorf("got %s, want it to begin with %s", text, line.head)
			}
			// Each test creates objects with a name of its own.
			name := strings.ToLower(strings.Trim(strings.NewReplacer(",", "", " ", "-", "/", "-").Replace(line.what),
				"-"))
			create(t, s.http, podsPath, name)
			create(t, s.http, deployments, name)
			out.await(t, "the change", ended, func(text string) bool {
				return strings.Contains(text, `{"type":"ADDED","object":{"kind":`) &&
					strings.Contains(text, `"name":"`+name+`"`)
			})
		})
	}
	t.Run("WebSocket from a foreign page", func(t *testing.T) {
		out, ended := curl(t,
			`curl -s`+upgrade+` -H "Origin: http://evil.example.com" "`+s.http+`/api/v1/pods?watch=true"`)
		<-ended
		if !strings.HasPrefix(out.String(), "HTTP/1.1 403") || !strings.Contains(out.String(), `"kind":"Status"`) {
			t.Errorf("got %s, want 403 with a Status", out)
		}
	})
}

// printedCommands returns the example commands that the server printed for a base URL.
func (s *runningServer) printedCommands(base string) []string {
	var lines []string
	for line := range strings.Lines(s.stdout.String()) {
		if line = strings.TrimSpace(line); strings.Contains(line, base+"/") || strings.Contains(line, base+" ") {
			if !strings.HasPrefix(line, "Serving on ") &&
				!strings.HasPrefix(line, "Debug endpoints and the console on ") {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

func TestQuickstartCommandsWork(t *testing.T) {
	c := makeCertificates(t)
	ca := t.TempDir() + "/ca.pem"
	for _, args := range [][]string{
		{"--addr", "127.0.0.1:0"},
		{"--addr", "", "--tls-addr", "127.0.0.1:0", "--tls-self-signed"},
		{
			"--addr", "", "--tls-addr", "127.0.0.1:0", "--tls-self-signed", "--tls-ca-out", ca, "--token-file",
			writeFile(t, "secret,ada,1"),
		},
		{"--addr", "127.0.0.1:0", "--debug-addr", "127.0.0.1:0", "--token-file", writeFile(t, "secret,ada,1")},
		{"--addr", "", "--tls-addr", "127.0.0.1:0", "--tls-self-signed", "--client-ca", c.ca},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			if args[1] == "" {
				// startServer waits for one listener for each argument that ends in "addr". An
				// empty --addr opens no listener, so replace these two arguments by "--addr=",
				// which ends differently.
				args = args[2:]
				args = append([]string{"--addr="}, args...)
			}
			s := startServer(t, args...)
			base := s.http + s.https
			hints := s.printedCommands(base)
			if len(hints) != 8 {
				t.Fatalf("got %d commands, want 8:\n%s", len(hints), s.stdout)
			}
			if s.debug != "" {
				hints = append(hints, s.printedCommands(s.debug)...)
			}
			replacer := strings.NewReplacer("$TOKEN", "secret", "client.pem", c.client, "client-key.pem", c.clientKey)
			// Create the object first: curl -i -N shows the header only with the first
			// event.
			hints[0], hints[3] = hints[3], hints[0]
			for _, line := range hints {
				tryPrintedCommand(t, replacer.Replace(line))
			}
		})
	}
}

// The file of --tls-ca-out may belong to the server that uses the address.
func TestCAFileIsKeptIfAnAddressIsInUse(t *testing.T) {
	const used = "the certificate of a running server"
	taken := startServer(t).http
	file := writeFile(t, used)
	_, notes := runCommand(t, cli.ExitFailure, "serve", "--addr", "127.0.0.1:0",
		"--tls-addr", strings.TrimPrefix(taken, "http://"), "--tls-self-signed", "--tls-ca-out", file)
	if !strings.Contains(notes, "in use") {
		t.Errorf("got %q, want the address in use", notes)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != used {
		t.Errorf("the file has changed: %q, %v", got, err)
	}
}

// tryPrintedCommand runs a printed command. The command may depend on earlier ones.
func tryPrintedCommand(t *testing.T, line string) {
	t.Helper()
	if !strings.HasPrefix(line, "curl ") {
		_, rest, _ := strings.Cut(line, " watch ")
		p := start(t, append([]string{"watch"}, strings.Fields(strings.ReplaceAll(rest, `"`, ""))...)...)
		select {
		case <-p.ended:
			t.Fatalf("%s: the program exited: %s", line, p.stderr)
		default:
		}
		p.interrupt()
		if code := p.exit(t); code != cli.ExitOK {
			t.Errorf("%s: exit code %d after the interrupt: %s", line, code, p.stderr)
		}
		return
	}
	want := map[string]string{
		"?pretty": `"items": [`, "?watch": "HTTP", "-d ": `"uid":`, "-X DELETE": "Success",
		"watches": "{", "compact": "compactedTo",
	}
	for sign, text := range want {
		if !strings.Contains(line, sign) {
			continue
		}
		if sign == "?watch" {
			line = strings.Replace(line, "curl ", "curl -i ", 1)
		}
		out, ended := curl(t, strings.Replace(line, "curl ", "curl -sS ", 1))
		out.await(t, text, ended, func(got string) bool { return strings.Contains(got, text) })
		if got := out.String(); strings.Contains(got, "Failure") || strings.Contains(got, " 401") {
			t.Errorf("%s: the response is a failure: %s", line, got)
		}
	}
}

func TestTokenFileAppliesToAllEndpoints(t *testing.T) {
	s := startServer(t, "--addr", "127.0.0.1:0", "--tls-addr", "127.0.0.1:0", "--tls-self-signed", "--token-file",
		writeFile(t, `secret,ada,1,"g"`))
	for _, url := range []string{s.http, s.https} {
		code, header, body := request(t, "GET", url+"/api/v1/pods?watch=1", "")
		if code != 401 || header.Get("WWW-Authenticate") == "" || !strings.Contains(body, `"reason":"Unauthorized"`) {
			t.Errorf("%s without a token: got %d %v %s, want 401 with WWW-Authenticate and a Status", url, code, header,
				body)
		}
		if code, _, body := request(t, "GET", url+"/api/v1/pods", "", "Authorization", "Bearer secret"); code != 200 {
			t.Errorf("%s with the token: got %d %s, want 200", url, code, body)
		}
	}
}

func TestClientCAAppliesToTLSOnly(t *testing.T) {
	s := startServer(t, "--addr", "127.0.0.1:0", "--tls-addr", "127.0.0.1:0", "--tls-self-signed", "--client-ca",
		makeCertificates(t).ca)
	if code, _, _ := request(t, "GET", s.http+"/api/v1/pods", ""); code != 200 {
		t.Errorf("clear text on loopback: got %d, want 200", code)
	}
	if code, _, _ := request(t, "GET", s.https+"/api/v1/pods", ""); code != 401 {
		t.Errorf("TLS without a certificate: got %d, want 401", code)
	}
	if code, _, _ := request(t, "GET", s.https+"/readyz", ""); code != 200 {
		t.Errorf("GET /readyz without a certificate: got %d, want 200", code)
	}
}

func TestServeErrorsAreOneLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--addr 0.0.0.0:0", cli.ExitFailure, "--insecure"},
		{
			"--addr " + taken.Addr().String(), cli.ExitFailure,
			taken.Addr().String() + ": bind: address already in use: another program listens there",
		},
		{"--addr=", cli.ExitUsage, "no address to listen on"},
		{"--addr nonsense", cli.ExitUsage, "HOST:PORT"},
		{"--tls-addr 127.0.0.1:0", cli.ExitUsage, "--tls-self-signed"},
		{"--tls-addr 127.0.0.1:0 --tls-cert x", cli.ExitUsage, "must be set together"},
		{"--tls-addr 127.0.0.1:0 --tls-cert x --tls-key x --tls-self-signed", cli.ExitUsage, "not both"},
		{"--tls-addr 127.0.0.1:0 --tls-cert absent --tls-key absent", cli.ExitFailure, "no such file"},
		{
			"--tls-addr 127.0.0.1:0 --tls-cert absent --tls-key absent --tls-ca-out x", cli.ExitUsage,
			"--tls-self-signed",
		},
		{"--client-ca x", cli.ExitUsage, "--tls-addr"},
		{"--tls-self-signed", cli.ExitUsage, "require --tls-addr"},
		{"--token-file absent", cli.ExitFailure, "no such file"},
		{"--oidc-issuer https://id.example.com", cli.ExitUsage, "--oidc-audience"},
		{"--oidc-issuer http://id.example.com --oidc-audience x", cli.ExitUsage, "https URL"},
		{
			"--oidc-issuer https://id.example.com --oidc-audience x --oidc-ca-file absent", cli.ExitFailure,
			"no such file",
		},
		{"--token-file " + writeFile(t, "a,b"), cli.ExitFailure, "line 1"},
		{
			"--tls-addr 127.0.0.1:0 --tls-self-signed --client-ca " + writeFile(t, "x"), cli.ExitFailure,
			"no certificate",
		},
		{"--allow-origin example.com", cli.ExitUsage, "https://"},
		{"--resource widgets", cli.ExitUsage, "=Kind"},
		{"--resource pods.v2=Pod", cli.ExitUsage, "already declared"},
		{"--history-bytes 1XB", cli.ExitUsage, "unknown unit"},
		{"--debug-addr 0.0.0.0:0", cli.ExitFailure, "loopback"},
		{"--no-such-flag", cli.ExitUsage, "unknown flag"},
		{"argument", cli.ExitUsage, `unexpected argument "argument"; usage: listwatch serve`},
	} {
		args := append([]string{"serve"}, strings.Fields(c.args)...)
		if !strings.Contains(c.args, "--addr") {
			args = append(args, "--addr", "127.0.0.1:0")
		}
		p := start(t, args...)
		code, stderr := p.exit(t), p.stderr.String()
		if code != c.code || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 ||
			!strings.HasPrefix(stderr, "listwatch: ") {
			t.Errorf("%s: exit code %d, stderr %q; want %d and one line with %q", c.args, code, stderr, c.code, c.want)
		}
	}
}

func TestSignalDrainsWatchesAndStops(t *testing.T) {
	// No other server or connection gets this port after the server has stopped.
	s := startServer(t, "--addr", ports.Address(t))
	res, err := http.Get(s.http + "/api/v1/pods?watch=true&allowWatchBookmarks=true")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	s.interrupt()
	body, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(body), `"type":"BOOKMARK"`) {
		t.Errorf("got %s, %v, want a final bookmark and then the end of the body", body, err)
	}
	if code := s.exit(t); code != cli.ExitOK {
		t.Errorf("exit code %d, want 0: %s", code, s.stderr)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(s.http, "http://")); err == nil {
		t.Error("the server still accepts connections after it exited")
	}
}

func TestDebugEndpoints(t *testing.T) {
	s := startServer(t, "--addr", "127.0.0.1:0", "--debug-addr", "127.0.0.1:0")
	_, _, list := request(t, "GET", s.http+"/api/v1/pods", "")
	var old struct{ Metadata listwatch.Metadata }
	if err := json.Unmarshal([]byte(list), &old); err != nil {
		t.Fatal(err)
	}
	res, err := http.Get(s.http + "/api/v1/pods?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var state struct {
		Watches []struct{ Transport, Path string }
	}
	// The client may receive the header before the server has counted the watch.
	for len(state.Watches) == 0 {
		_, _, body := request(t, "GET", s.debug+"/debug/watches", "")
		if err := json.Unmarshal([]byte(body), &state); err != nil {
			t.Fatalf("got %s, %v, want the open watch", body, err)
		}
	}
	if w := state.Watches; len(w) != 1 || w[0].Path != "/api/v1/pods" {
		t.Errorf("got %v, want exactly the open watch", w)
	}
	create(t, s.http, podsPath, "one")
	if code, _, body := request(t, "POST", s.debug+"/debug/compact", ""); code != 200 {
		t.Errorf("compact: got %d %s", code, body)
	}
	_, _, events := request(t, "GET", s.http+"/api/v1/pods?watch=true&resourceVersion="+old.Metadata.ResourceVersion,
		"")
	if !strings.Contains(events, `"type":"ERROR"`) || !strings.Contains(events, `"code":410`) {
		t.Errorf("a watch from before the compaction: got %s, want an ERROR event with code 410", events)
	}
	if code, _, _ := request(t, "POST", s.debug+"/debug/compact", "", "Origin",
		"http://evil.example.com"); code != 403 {
		t.Errorf("compact with the Origin of a web page: got %d, want 403", code)
	}
	if code, _, _ := request(t, "GET", s.debug+"/debug/compact", ""); code != 405 {
		t.Errorf("GET /debug/compact: got %d, want 405", code)
	}
	if code, _, _ := request(t, "GET", s.debug+"/debug/pprof/goroutine?debug=1", ""); code != 200 {
		t.Errorf("pprof: got %d, want 200", code)
	}
}

func TestAllowedOriginsAndExtraResources(t *testing.T) {
	s := startServer(t, "--allow-origin", "http://127.0.0.1:*", "--resource", "widgets.v1.demo.example.com=Widget",
		"--resource", "gadgets.v1.demo=Gadget,cluster")
	create(t, s.http, "/apis/demo.example.com/v1/namespaces/default/widgets", "one")
	create(t, s.http, "/apis/demo/v1/gadgets", "one")
	_, header, _ := request(t, "GET", s.http+"/api/v1/pods", "", "Origin", "http://127.0.0.1:3000")
	if got := header.Get("Access-Control-Allow-Origin"); got != "http://127.0.0.1:3000" {
		t.Errorf("got Access-Control-Allow-Origin %q, want the origin of the request", got)
	}
	_, header, _ = request(t, "GET", s.http+"/api/v1/pods", "", "Origin", "http://evil.example.com")
	if got := header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("got Access-Control-Allow-Origin %q, want none", got)
	}
}

func TestNoCompressionFlag(t *testing.T) {
	for flag, want := range map[string]string{"--no-compression": "", "--verbose": "gzip"} {
		s := startServer(t, "--addr", "127.0.0.1:0", flag)
		_, h, _ := request(t, "GET", s.http+"/api/v1/pods?watch=true&timeoutSeconds=1", "", "Accept-Encoding", "gzip")
		if got := h.Get("Content-Encoding"); got != want {
			t.Errorf("%s: Content-Encoding %q, want %q", flag, got, want)
		}
	}
}

func TestWebSocketOverHTTP2Flag(t *testing.T) {
	for flag, permitted := range map[string]bool{"--websocket-over-http2": true, "--verbose": false} {
		s := startServer(t, "--addr", "127.0.0.1:0", flag)
		u, err := url.Parse(s.http +
			"/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
		if err != nil {
			t.Fatal(err)
		}
		client := h2websocket.NewClient(transport.Network{},
			func(n transport.Network) transport.Client { return &websocket.Client{Network: n} })
		receiver, err := client.Dial(t.Context(), &transport.Request{URL: u})
		if (err == nil) != permitted {
			t.Errorf("%s: got %v from a WebSocket over HTTP/2", flag, err)
		}
		if err != nil {
			continue
		}
		if e, err := receiver.Receive(); err != nil || e.Type != "BOOKMARK" {
			t.Errorf("got %s, %v; want a bookmark", e.Type, err)
		}
		receiver.Close()
	}
}

func TestSharedCompressionFlag(t *testing.T) {
	s := startServer(t, "--addr", "127.0.0.1:0", "--shared-compression", "namespace", "--resource", "secrets.v1=Secret")
	const all, namespace, secrets = "/api/v1/configmaps", "/api/v1/namespaces/default/configmaps",
		"/api/v1/namespaces/default/secrets"
	// Each path gets two watches, because the first watch of a path cannot use a shared history.
	bodies := make(map[string][]*countingBody)
	for _, path := range []string{all, namespace, secrets} {
		bodies[path] = []*countingBody{watchGzip(t, s.http+path), watchGzip(t, s.http+path)}
	}
	text := "" // has no repetitions, so only a history of earlier events can compress it well
	for i := range 8 {
		text += fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i)}))
	}
	for i := range 20 {
		// The values are valid base64, because one of the objects is a Secret.
		object := fmt.Sprintf(`{"metadata":{"name":"object-%d"},"data":{"n":"%04d","text":%q}}`, i, i, text)
		for _, path := range []string{namespace, secrets} {
			if status, _, body := request(t, "POST", s.http+path, object); status != http.StatusCreated {
				t.Fatalf("got status %d: %s", status, body)
			}
		}
		for path, two := range bodies {
			for _, b := range two {
				if line, err := b.lines.ReadString('\n'); err != nil ||
					!strings.Contains(line, fmt.Sprintf(`"name":"object-%d"`, i)) {
					t.Fatalf("%s: got %q, %v", path, line, err)
				}
			}
		}
	}
	// Of the two watches of a path, the watch that received the first event earlier cannot use the
	// shared history until the next segment. So compare the watches with the fewest bytes.
	fewest := func(path string) int64 { return min(bodies[path][0].n, bodies[path][1].n) }
	separate := fewest(all)
	if shared := fewest(namespace); shared > separate/2 {
		t.Errorf("a watch of one namespace takes %d bytes, want at most half of the %d bytes for all namespaces",
			shared, separate)
	}
	if got := fewest(secrets); got < separate*3/4 {
		t.Errorf("a watch of secrets takes %d bytes, want about the %d bytes without shared history", got, separate)
	}
}

// watchGzip opens a watch that accepts only gzip.
func watchGzip(t *testing.T, url string) *countingBody {
	res := testkit.Get(t, url+"?watch=true", "Accept-Encoding", "gzip")
	body := &countingBody{r: res.Body}
	body.lines = bufio.NewReader(testkit.Must(gzip.NewReader(body))(t))
	return body
}

// A countingBody counts the bytes of a compressed body. lines reads the decompressed text.
type countingBody struct {
	r     io.Reader
	n     int64
	lines *bufio.Reader
}

func (b *countingBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.n += int64(n)
	return n, err
}

func TestServeOffersTheJavaScriptClient(t *testing.T) {
	s := startServer(t)
	for path, want := range map[string]int{
		"/js/listwatch.js": http.StatusOK, "/js/src/watch.js": http.StatusOK,
		"/js/none.js": http.StatusNotFound,
	} {
		resp, err := http.Get(s.http + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("Content-Type"); resp.StatusCode != want || want == http.StatusOK &&
			!strings.HasPrefix(got, "text/javascript") {
			t.Errorf("%s: got %d with type %q, want %d", path, resp.StatusCode, got, want)
		}
	}
}

func TestMetricsHaveAnAddressOfTheirOwn(t *testing.T) {
	s := startServer(t, "--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--debug-addr", "127.0.0.1:0",
		"--data", filepath.Join(t.TempDir(), "data"))
	create(t, s.http, podsPath, "one")
	text := s.stdout.String()
	_, metrics, _ := strings.Cut(text, "Metrics on ")
	metrics, _, _ = strings.Cut(metrics, ",")
	for _, base := range []string{metrics, s.debug} {
		code, _, body := request(t, "GET", base+"/metrics", "")
		for _, want := range []string{
			`listwatch_objects{group="",resource="pods",version="v1"} 1`, `listwatch_store_commit_writes_sum 1`,
			`go_goroutines `, `listwatch_store_file_bytes `,
		} {
			if !strings.Contains(body, "\n"+want) {
				t.Errorf("%s/metrics: got %d without %s", base, code, want)
			}
		}
	}
	for path, want := range map[string]int{
		"/healthz": 200, "/livez": 200, "/readyz": 200, "/api/v1/pods": 404,
		"/debug/pprof/": 404,
	} {
		if code, _, body := request(t, "GET", metrics+path, ""); code != want {
			t.Errorf("%s: got %d %s, want %d", path, code, body, want)
		}
	}
}

func TestWritesAndEndedWatchesAreLogged(t *testing.T) {
	audit := filepath.Join(t.TempDir(), "audit.log")
	s := startServer(t, "--addr", "127.0.0.1:0", "--audit-log", audit, "--ttl", "pods=500ms")
	create(t, s.http, podsPath, "one")
	request(t, "DELETE", s.http+podsPath+"/none", "")
	// The pod ends after a second.
	request(t, "GET", s.http+"/api/v1/pods?watch=true&timeoutSeconds=2", "")
	s.stderr.await(t, "the end of the watch", s.ended, func(text string) bool {
		return strings.Contains(text, `msg="watch ended"`) &&
			strings.Contains(text, "resource=pods path=/api/v1/pods ") && strings.Contains(text, "reason=complete")
	})
	s.interrupt()
	if code := s.exit(t); code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
	data, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], `"verb":"create","namespace":"default","name":"one"`) ||
		!strings.Contains(lines[1], `"status":404`) ||
		!strings.Contains(lines[2], `"msg":"expired","resource":"pods","namespace":"default","name":"one"`) {
		t.Errorf("got\n%s\nwant a create, a refused delete and an expired pod", data)
	}
}

func TestDebugRoutesRefuseOtherPagesAndHosts(t *testing.T) {
	s := startServer(t, "--addr", "127.0.0.1:0", "--debug-addr", "127.0.0.1:0", "--insecure")
	for _, route := range []string{
		"GET /metrics", "GET /debug/watches", "GET /debug/pprof/", "GET /debug/pprof/profile?seconds=1",
		"GET /debug/pprof/trace?seconds=1",
		"GET /debug/pprof/cmdline", "POST /debug/compact", "POST /debug/watches/1/end",
	} {
		method, path, _ := strings.Cut(route, " ")
		for _, header := range [][]string{
			{"Origin", "http://evil.example.com"},
			{"Origin", "null"},
			{"Sec-Fetch-Site", "cross-site"},
			{"Sec-Fetch-Site", "same-site"},
		} {
			if code, _, body := request(t, method, s.debug+path, "", header...); code != http.StatusForbidden {
				t.Errorf("%s with %q: got %d %s, want 403", route, header, code, body)
			}
		}
		r, err := http.NewRequestWithContext(t.Context(), method, s.debug+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "evil.example.com"
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("%s with another Host: got %d, want 403", route, res.StatusCode)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if code, _, _ := request(t, "GET", s.debug+"/debug/watches", "", "Origin", s.debug, "Sec-Fetch-Site",
		"same-origin"); code != http.StatusOK {
		t.Errorf("the own origin: got %d, want 200", code)
	}
}

func TestOperatorEndsOneWatch(t *testing.T) {
	s := startServer(t, "--addr", "127.0.0.1:0", "--debug-addr", "127.0.0.1:0")
	res, err := http.Get(s.http + "/api/v1/pods?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	// The client may receive the header before the server has counted the watch.
	code := 0
	for late := time.After(testTimeout); code != http.StatusOK; {
		select {
		case <-late:
			t.Fatalf("got %d, want 200", code)
		default:
			code, _, _ = request(t, "POST", s.debug+"/debug/watches/1/end", "")
		}
	}
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Errorf("the watch: %v, want a clean end", err)
	}
	if code, _, _ := request(t, "GET", s.debug+"/debug/watches/1/end", ""); code != http.StatusMethodNotAllowed {
		t.Errorf("GET: got %d, want 405", code)
	}
}
