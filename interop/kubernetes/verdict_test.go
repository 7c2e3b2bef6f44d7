//go:build !race

package kubernetes

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/conformance/adapters"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/report"
	"github.com/listwatch/listwatch/internal/ports"
	"github.com/listwatch/listwatch/interop/internal/apiserver"
	"github.com/listwatch/listwatch/interop/internal/program"
)

var verdicts = flag.String("verdicts", "", "directory to which TestVerdicts writes its reports")

// TestVerdicts writes the reports of conformance/verdicts, or one of them:
//
//	go test ./kubernetes -run TestVerdicts/kubectl-proxy -verdicts DIR -timeout 1h
func TestVerdicts(t *testing.T) {
	if *verdicts == "" {
		t.Skip("it only writes reports: see -verdicts")
	}
	for name, open := range map[string]func(*testing.T) conformance.Target{
		"apiextensions-apiserver": func(t *testing.T) conformance.Target { return openTarget(t, apiserver.Start(t)) },
		"apiextensions-kine":      openKine,
		"kubectl-proxy":           openKubectlProxy,
		"listwatch-relay":         openRelay,
	} {
		t.Run(name, func(t *testing.T) { writeReport(t, name, open(t)) })
	}
}

// openKine opens an API server over kine, which translates etcd's protocol to SQLite.
func openKine(t *testing.T) conformance.Target {
	t.Helper()
	dir, addr := t.TempDir(), ports.Address(t)
	install := exec.Command("go", "install", "github.com/k3s-io/kine@v0.17.5")
	install.Env = append(os.Environ(), "GOWORK=off", "GOBIN="+dir)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("go install: %v\n%s", err, out)
	}
	kine := exec.Command(filepath.Join(dir, "kine"), "--listen-address", "tcp://"+addr,
		"--endpoint", "sqlite://"+filepath.Join(dir, "state.db")+"?_journal=WAL&cache=shared",
		"--metrics-bind-address", "0")
	kine.Dir = dir
	startUntilKilled(t, kine)
	return openTarget(t, apiserver.StartWith(t, apiserver.Options{Etcd: "http://" + addr}))
}

// openKubectlProxy opens an API server behind kubectl proxy, which adds the credentials.
func openKubectlProxy(t *testing.T) conformance.Target {
	t.Helper()
	proxy := exec.Command("kubectl", "proxy", "--port=0", "--kubeconfig", writeKubeconfig(t, apiserver.Start(t)))
	out, err := proxy.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	startUntilKilled(t, proxy)
	line, err := bufio.NewReader(out).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "Starting to serve on ")
	if !ok {
		t.Fatalf("kubectl proxy: %q, %v", line, err)
	}
	return openAt(t, "http://"+addr, adapters.Options{})
}

// openRelay opens an API server behind our relay.
func openRelay(t *testing.T) conformance.Target {
	t.Helper()
	s := apiserver.Start(t)
	relay := startRelay(t, program.Build(t), ports.Address(t), writeKubeconfig(t, s), "--cluster")
	header := http.Header{"Authorization": {"Bearer " + s.Token}}
	target := openAt(t, relay.URL(), adapters.Options{Header: header})
	url := target.Open(t, harness.Setup{}).URL.String()
	// The relay passes requests for a new resource on until it knows the resource.
	eventually(t, "the relay answers requests for the custom resource itself", func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.Header.Get("Accept-Query") != "" // which the API server does not send
	})
	return target
}

// startUntilKilled starts a program and kills it at the end of the test.
func startUntilKilled(t *testing.T, c *exec.Cmd) {
	t.Helper()
	c.Stderr = t.Output()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // it may have exited
		_ = c.Wait()
	})
}

// writeReport tests a target, and writes the report to a file with its name.
func writeReport(t *testing.T, name string, target conformance.Target) {
	t.Helper()
	target.Name, target.Patience = name, 20*time.Second // only failing cases wait that long
	r, err := conformance.Execute(t.Context(), target,
		conformance.Options{Subject: harness.Server, Set: "2026-12"}, func(o conformance.Outcome) {
			t.Logf("%s %s", o.Verdict, o.Name())
		})
	if err != nil {
		t.Fatal(err)
	}
	r.Command = []string{"go", "test", "./kubernetes", "-run", t.Name(), "-verdicts", "DIR", "-timeout", "1h"}
	f, err := os.Create(filepath.Join(*verdicts, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := report.JSON(f, r); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// access returns the options for access to s.
func access(s *apiserver.Server) adapters.Options {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.CA)
	return adapters.Options{
		TLS: &tls.Config{RootCAs: pool}, Header: http.Header{"Authorization": {"Bearer " + s.Token}},
	}
}
