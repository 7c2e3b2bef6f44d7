//go:build unix

package main

import (
	"bufio"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/internal/testkit"
)

// replaceFile overwrites the first file with the content of the second.
func replaceFile(t *testing.T, to, from string) {
	t.Helper()
	if err := os.WriteFile(to, readFile(t, from), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	return testkit.Must(os.ReadFile(name))(t)
}

// A watchGroup has watches with the same credentials.
type watchGroup struct {
	name   string
	client *http.Client
	token  string
}

func newWatchGroup(t *testing.T, name, token, cert, key string) *watchGroup {
	config := &tls.Config{InsecureSkipVerify: true}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &watchGroup{name, &http.Client{Transport: transport}, token}
}

func (g *watchGroup) do(t *testing.T, method, url, body string) *http.Response {
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return nil
	}
	if g.token != "" {
		r.Header.Set("Authorization", "Bearer "+g.token)
	}
	res, err := g.client.Do(r)
	if err != nil {
		t.Error(err)
		return nil
	}
	return res
}

// open opens n watches. It sends "NAME CODE" to events for each error, "NAME after" for each event
// of the object "after", and "NAME end" for each end of a watch. NAME is the name of the group.
func (g *watchGroup) open(t *testing.T, n int, url string, readers *sync.WaitGroup, events chan<- string) {
	t.Helper()
	for range n {
		res := g.do(t, "GET", url+podsPath+"?watch=true", "")
		if res == nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: cannot open a watch: %+v", g.name, res)
		}
		readers.Go(func() {
			defer res.Body.Close()
			for lines := bufio.NewScanner(res.Body); lines.Scan(); {
				text := lines.Text()
				switch {
				case strings.Contains(text, `"type":"ERROR"`):
					_, code, _ := strings.Cut(text, `"code":`)
					events <- g.name + " " + code[:3]
				case strings.Contains(text, `"name":"after"`):
					events <- g.name + " after"
				}
			}
			events <- g.name + " end"
		})
	}
}

// expect receives events until it has received exactly the events in want.
func expect(t *testing.T, p *process, events <-chan string, want map[string]int) {
	t.Helper()
	got, late := map[string]int{}, time.After(testTimeout)
	for fmt.Sprint(got) != fmt.Sprint(want) {
		select {
		case e := <-events:
			if got[e]++; got[e] > want[e] {
				t.Fatalf("got the event %q, after %v; want %v; the server wrote:\n%s", e, got, want, p.stderr)
			}
		case <-late:
			t.Fatalf("got %v, want %v; the server wrote:\n%s", got, want, p.stderr)
		}
	}
}

// expectNone checks that no reader waits to send an event.
func expectNone(t *testing.T, events <-chan string) {
	t.Helper()
	select {
	case e := <-events:
		t.Errorf("got the event %q too early", e)
	default:
	}
}

func TestReloadDisturbsNoAllowedWatch(t *testing.T) {
	old, renewed := makeCertificates(t), makeCertificates(t)
	tokens, policy := writeFile(t, accessTokens+"bob-token,bob,3,admins\n"),
		writeFile(t, policyLine(`"user":"*","resource":"pods","namespace":"*"`))
	cas := writeFile(t, string(readFile(t, old.ca))+string(readFile(t, renewed.ca)))
	p := startProcess(t, nil, "serve", "--addr=", "--tls-addr", "127.0.0.1:0", "--tls-cert", old.server, "--tls-key",
		old.serverKey,
		"--client-ca", cas, "--token-file", tokens, "--authorization-policy", policy)
	url := p.awaitURL(t)

	var readers sync.WaitGroup
	events := make(chan string)
	// The new files still allow ada, with a token or with a renewed certificate. They no longer
	// contain bob's token, the rights of eve, or the old CA.
	ada, certified := newWatchGroup(t, "ada", "ada-token", "", ""),
		newWatchGroup(t, "certified", "", renewed.client, renewed.clientKey)
	bob, eve := newWatchGroup(t, "bob", "bob-token", "", ""), newWatchGroup(t, "eve", "eve-token", "", "")
	distrusted := newWatchGroup(t, "distrusted", "", old.client, old.clientKey)
	ada.open(t, 960, url, &readers, events)
	for _, g := range []*watchGroup{certified, bob, eve, distrusted} {
		g.open(t, 10, url, &readers, events)
	}
	expectNone(t, events)

	replaceFile(t, old.server, renewed.server)
	replaceFile(t, old.serverKey, renewed.serverKey)
	replaceFile(t, cas, renewed.ca)
	replaceFile(t, tokens, writeFile(t, strings.Replace(accessTokens, "admins", "owners", 1)))
	replaceFile(t, policy, writeFile(t, policyLine(`"user":"ada","resource":"pods","namespace":"*"`)))
	begun := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	expect(t, p, events, map[string]int{
		"bob 401": 10, "bob end": 10, "eve 403": 10, "eve end": 10,
		"distrusted 401": 10, "distrusted end": 10,
	})
	t.Logf("the watches ended within %v", time.Since(begun))

	for name, g := range map[string]*watchGroup{"bob": bob, "distrusted": distrusted} {
		if res := g.do(t, "GET", url+podsPath, ""); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("a new request of %s: got %d, want 401", name, res.StatusCode)
		}
	}
	if res := eve.do(t, "GET", url+podsPath, ""); res.StatusCode != http.StatusForbidden {
		t.Errorf("a new request of eve: got %d, want 403", res.StatusCode)
	}
	fresh := newWatchGroup(t, "fresh", "ada-token", "", "")
	res := fresh.do(t, "POST", url+podsPath, `{"metadata":{"name":"after"}}`)
	if res.StatusCode != http.StatusCreated {
		body, _ := io.ReadAll(res.Body)
		t.Fatalf("a write of ada: got %d %s", res.StatusCode, body)
	}
	pair, err := tls.LoadX509KeyPair(renewed.server, renewed.serverKey)
	if err != nil {
		t.Fatal(err)
	}
	if got := res.TLS.PeerCertificates[0]; !got.Equal(pair.Leaf) {
		t.Error("a new connection got the old certificate")
	}
	expect(t, p, events, map[string]int{"ada after": 960, "certified after": 10})

	if err := os.WriteFile(old.server, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Process.Signal(syscall.SIGHUP)
	p.stderr.await(t, "a warning", p.ended, func(text string) bool {
		return strings.Contains(text, "level=WARN") && strings.Contains(text, "--tls-cert "+old.server)
	})
	if res := newWatchGroup(t, "last", "ada-token", "", "").do(t, "GET", url+podsPath, ""); res == nil ||
		res.StatusCode != http.StatusOK {
		t.Errorf("with half a certificate: got %+v, want the previous one to stay in use", res)
	}
	expectNone(t, events)
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	expect(t, p, events, map[string]int{"ada end": 960, "certified end": 10})
	if code, stderr := p.exit(); code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	readers.Wait()
}

// awaitRelayed waits until the relay serves the object at url.
func awaitRelayed(t *testing.T, r *process, url string) {
	t.Helper()
	for late, code := time.After(testTimeout), 0; code != http.StatusOK; {
		select {
		case <-late:
			t.Fatalf("the relay does not reach its upstream: got %d; it wrote:\n%s", code, r.stderr)
		default:
			code, _, _ = request(t, "GET", url, "")
		}
	}
}

func TestRelayUsesChangedUpstreamCA(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	kubeconfig := func(server, ca string) string {
		return "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n" +
			"clusters: [{name: c, cluster: {server: '" + server + "', certificate-authority: '" + ca + "'}}]\n"
	}
	for name, flags := range map[string]func(server, ca string) []string{
		"flags": func(server, ca string) []string { return []string{"--upstream", server, "--upstream-ca", ca} },
		"kubeconfig": func(server, ca string) []string {
			return []string{"--kubeconfig", writeFile(t, kubeconfig(server, ca))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			old, renewed := makeCertificates(t), makeCertificates(t)
			address := ports.Address(t)
			serve := func(cert, key string) *process {
				p := startProcess(t, nil, "serve", "--addr=", "--tls-addr", address, "--tls-cert", cert, "--tls-key",
					key, "--data", filepath.Join(filepath.Dir(old.ca), "test.db"))
				p.awaitURL(t)
				return p
			}
			origin, ca := serve(old.server, old.serverKey), writeFile(t, string(readFile(t, old.ca)))
			r := startProcess(t, nil, append([]string{"relay", "--addr", "127.0.0.1:0", "--resource", "pods"},
				flags("https://"+address, ca)...)...)
			text := r.stdout.await(t, "address", r.ended,
				func(text string) bool { return strings.Contains(text, "\n\n") })
			_, url, _ := strings.Cut(text, "Relaying on ")
			url, _, _ = strings.Cut(url, " ")
			requireStatus(t, 200, "GET", url+podsPath)
			watch := newWatchGroup(t, "watch", "", "", "")
			events := make(chan string, 16)
			var readers sync.WaitGroup
			watch.open(t, 1, url, &readers, events)

			origin.kill()
			replaceFile(t, ca, renewed.ca)
			_ = r.cmd.Process.Signal(syscall.SIGHUP)
			r.stderr.await(t, "the reload", r.ended,
				func(text string) bool { return strings.Contains(text, "using the changed files") })
			serve(renewed.server, renewed.serverKey)
			writer := newWatchGroup(t, "writer", "", "", "")
			if res := writer.do(t, "POST", "https://"+address+podsPath, `{"metadata":{"name":"after"}}`); res == nil ||
				res.StatusCode != http.StatusCreated {
				t.Fatalf("got %+v, want 201", res)
			}
			awaitRelayed(t, r, url+podsPath+"/after")
			expect(t, r, events, map[string]int{"watch after": 1})
			r.kill()
			readers.Wait()
		})
	}
}

func TestRelayUsesChangedUpstreamCertificate(t *testing.T) {
	if testing.Short() {
		t.Skip("slow; make test runs it")
	}
	old, renewed := makeCertificates(t), makeCertificates(t)
	cas := writeFile(t, string(readFile(t, old.ca)))
	origin := startProcess(t, nil, "serve", "--addr=", "--tls-addr", "127.0.0.1:0", "--tls-cert", old.server,
		"--tls-key", old.serverKey, "--client-ca", cas)
	url := origin.awaitURL(t)
	ca := writeFile(t, string(readFile(t, old.ca)))
	r := startProcess(t, nil, "relay", "--addr", "127.0.0.1:0", "--upstream", url, "--upstream-ca", ca,
		"--upstream-cert", old.client,
		"--upstream-key", old.clientKey, "--resource", "pods")
	text := r.stdout.await(t, "address", r.ended, func(text string) bool { return strings.Contains(text, "\n\n") })
	_, relay, _ := strings.Cut(text, "Relaying on ")
	relay, _, _ = strings.Cut(relay, " ")
	requireStatus(t, 200, "GET", relay+podsPath)

	replaceFile(t, old.client, renewed.client)
	replaceFile(t, old.clientKey, renewed.clientKey)
	_ = r.cmd.Process.Signal(syscall.SIGHUP)
	r.stderr.await(t, "the reload", r.ended,
		func(text string) bool { return strings.Contains(text, "using the changed files") })
	replaceFile(t, cas, renewed.ca)
	_ = origin.cmd.Process.Signal(syscall.SIGHUP)
	origin.stderr.await(t, "the reload", origin.ended,
		func(text string) bool { return strings.Contains(text, "ended watches whose users") })
	writer := newWatchGroup(t, "writer", "", renewed.client, renewed.clientKey)
	if res := writer.do(t, "POST", url+podsPath,
		`{"metadata":{"name":"after"}}`); res.StatusCode != http.StatusCreated {
		t.Fatalf("got %d, want 201", res.StatusCode)
	}
	awaitRelayed(t, r, relay+podsPath+"/after")
}

func TestCAsOfTheProviderCanBeChanged(t *testing.T) {
	p := startIDProviderWith(t, httptest.NewTLSServer)
	cas := makeCertificates(t).ca // of another server
	s := startProcess(t, nil, "serve", "--addr", "127.0.0.1:0", "--oidc-issuer", p.URL, "--oidc-audience", "flags",
		"--oidc-ca-file", cas)
	url := s.awaitURL(t) + podsPath
	want := func(status int, while string) {
		t.Helper()
		code, _, body := request(t, http.MethodGet, url, "", "Authorization", "Bearer "+p.token(t, "flags"))
		if code != status {
			t.Errorf("%s: got %d %s, want %d", while, code, body, status)
		}
	}
	want(http.StatusServiceUnavailable, "with the CA of another server")
	trusted := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
	replaceFile(t, cas, writeFile(t, string(trusted)))
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.stderr.await(t, "the reload", s.ended, func(text string) bool {
		return strings.Contains(text, "using the changed files")
	})
	want(http.StatusOK, "with the CA of the provider")
}
