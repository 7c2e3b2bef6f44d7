package adapters_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/adapters"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/runner"
	"github.com/listwatch/listwatch/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestUntestableTargetIsRefused(t *testing.T) {
	base := serve(t, nil)
	closed := serve(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	})
	for address, want := range map[string]string{
		"http://127.0.0.1:1/api/v1/pods":    "is it running?",
		base + "/nowhere":                   "cannot be tested",
		base + "/api":                       "want a list",
		base + "/api/v1/pods?limit=5":       "remove the query",
		"ftp://127.0.0.1/":                  "must be an http or https URL",
		"http://me:secret@127.0.0.1/":       "pass a header",
		closed + "/api/v1/pods":             "pass a token",
		"https" + base[4:] + "/api/v1/pods": "cannot be tested",
	} {
		_, err := adapters.URL(t.Context(), address, adapters.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an error with %q", address, err, want)
		}
	}
	for resource, want := range map[string]string{
		"namespaces": "is in no namespace", "widgets.v1.example.com": "not found", "nothing": "widgets.v1.demo.example.com",
	} {
		if _, err := adapters.Kube(t.Context(), base, resource, adapters.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("resource %s: got %v, want an error with %q", resource, err, want)
		}
	}
}

func TestCredentialsAreHiddenInReports(t *testing.T) {
	const secret = "Bearer s3cr3t"
	base := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != secret {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/configmaps") {
				w.WriteHeader(http.StatusTeapot) // makes the cases fail
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	c, err := adapters.Kube(t.Context(), base, "", adapters.Options{Header: http.Header{"Authorization": {secret}}, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := conformance.Execute(t.Context(), c.Target, conformance.Options{Run: []string{"handshake/ws-version", "handshake/headers-before-events"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	failed, all := 0, ""
	for _, o := range r.Outcomes {
		if o.Verdict == runner.Fail {
			failed++
		}
		all += strings.Join(append(append(o.Messages, o.Log...), o.Timeline...), "\n")
	}
	if failed != 2 || strings.Contains(all, "s3cr3t") || !strings.Contains(all, "(hidden)") {
		t.Errorf("got %d failures, want 2; the credentials must be hidden in:\n%s", failed, all)
	}
}

func TestInterruptedRunCleansUp(t *testing.T) {
	base := serve(t, nil)
	c, err := adapters.Kube(t.Context(), base, "", adapters.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := 0
	r, err := conformance.Execute(ctx, c.Target, conformance.Options{Run: []string{"event"}}, func(conformance.Outcome) {
		if ran++; ran == 3 {
			cancel()
		}
	})
	if err != nil || r.OK() {
		t.Fatalf("got %v, OK %v; want an unfinished run", err, r.OK())
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/configmaps", "/api/v1/namespaces"} {
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 4096)
		n, _ := resp.Body.Read(text)
		resp.Body.Close()
		if !strings.Contains(string(text[:n]), `"items":[]`) {
			t.Errorf("%s: got %s, want no items", path, text[:n])
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestReadKubeconfig(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("token", "t0ken\n")
	const head = "apiVersion: v1\nkind: Config\ncurrent-context: b\ncontexts:\n- {name: a, context: {cluster: x, user: x}}\n- {name: b, context: {cluster: c, user: u}}\n"
	good := write("config", head+`
clusters:
- name: c
  cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true, tls-server-name: kube}
users:
- name: u
  user: {tokenFile: token}
`)
	base, a, err := adapters.ReadKubeconfig(good, adapters.Options{Timeout: time.Minute})
	if err != nil || base != "https://127.0.0.1:6443" || !a.TLS.InsecureSkipVerify || a.TLS.ServerName != "kube" ||
		a.Header.Get("Authorization") != "Bearer t0ken" || a.Timeout != time.Minute {
		t.Errorf("got %s, %+v, %v", base, a, err)
	}
	for text, want := range map[string]string{
		"{":                        "not a kubeconfig file",
		"current-context: nowhere": "does not refer to a cluster",
		head + "clusters: [{name: c, cluster: {server: x, certificate-authority-data: '!'}}]":                           "certificate-authority-data",
		head + "clusters: [{name: c, cluster: {server: x, certificate-authority-data: eA==}}]":                          "must contain a certificate in PEM",
		head + "clusters: [{name: c, cluster: {server: x}}]\nusers: [{name: u, user: {exec: {command: x}}}]":            "exec",
		head + "clusters: [{name: c, cluster: {server: x}}]\nusers: [{name: u, user: {client-certificate: missing}}]":   "missing",
		head + "clusters: [{name: c, cluster: {server: x}}]\nusers: [{name: u, user: {client-certificate-data: eA==}}]": "client-certificate",
	} {
		if _, _, err := adapters.ReadKubeconfig(write("bad", text), adapters.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", text, err, want)
		}
	}
}

// buildHookServer compiles the example of a server with a control hook.
func buildHookServer(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hookserver")
	if out, err := exec.Command("go", "build", "-o", file, "../testdata/hookserver").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

func TestExecServer(t *testing.T) {
	p, err := adapters.ExecServer(t.Context(), buildHookServer(t), os.Stderr, 0)
	if err != nil {
		t.Fatal(err)
	}
	o := conformance.Options{Run: []string{"select", "drain", "resume/expired", "resume/server-restart", "drop/client-close"}}
	if n := judge(t, p.Target, o); n < 40 {
		t.Errorf("only %d runs passed", n)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestInvalidCommandIsRefused(t *testing.T) {
	for command, want := range map[string]string{
		"exit 3":             "it exited before it wrote its first line",
		"echo hello; read x": "invalid character",
		`echo '{"url":"http://127.0.0.1:1/","kind":"Thing"}'; read x`: "cannot be tested",
		`echo '{"url":"http://127.0.0.1:1/"}'; read x`:                "kind",
	} {
		if _, err := adapters.ExecServer(t.Context(), command, os.Stderr, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", command, err, want)
		}
	}
	if _, err := adapters.ExecClient(t.Context(), `echo '{"can":[]}'; read x`, os.Stderr, 0); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("client without transports: got %v, want an error of code Invalid", err)
	}
}

// This test runs the example adapters if their languages are installed. The files beside
// them list what they are known to get wrong.
func TestExecClientsInOtherLanguages(t *testing.T) {
	for _, test := range []struct{ program, adapter, knownFailures string }{
		{"python3", "watch.py", "known_failures_python.txt"}, {"node", "watch.mjs", "known_failures_node.txt"},
	} {
		t.Run(test.program, func(t *testing.T) {
			if _, err := exec.LookPath(test.program); err != nil {
				t.Skip(test.program + " is not installed")
			}
			dir := filepath.Join("..", "testdata", "adapters")
			known, err := os.Open(filepath.Join(dir, test.knownFailures))
			if err != nil {
				t.Fatal(err)
			}
			defer known.Close()
			p, err := adapters.ExecClient(t.Context(), test.program+" "+filepath.Join(dir, test.adapter), os.Stderr, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			p.Target.Variants = []string{"h1"}
			o := conformance.Options{Subject: harness.Client, Run: []string{"framing", "event", "resume", "unicode"}, Skip: []string{"event/latency", "resume/list-then-watch"}}
			if o.KnownFailures, err = conformance.ParseKnownFailures(known); err != nil {
				t.Fatal(err)
			}
			r, err := conformance.Execute(t.Context(), p.Target, o, nil)
			if err != nil {
				t.Fatal(err)
			}
			passed := 0
			for _, out := range r.Outcomes {
				switch {
				case out.Verdict == runner.Pass:
					passed++
				case out.Verdict.IsFailure() || out.Verdict == runner.Warn:
					t.Errorf("%s: %s: %q\n%s", out.Name(), out.Verdict, out.Messages, strings.Join(out.Timeline, "\n"))
				}
			}
			if passed < 10 {
				t.Errorf("only %d runs passed", passed)
			}
		})
	}
}
