package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
	"github.com/listwatch/listwatch/internal/leaktest"
)

// asProgramEnv names an environment variable. If it is set, the test binary acts as the
// program, for tests that kill a process.
const asProgramEnv = "LISTWATCH_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgramEnv) != "" {
		main()
	}
	leaktest.Main(m)
}

// testTimeout is how long a test waits for output.
const testTimeout = 30 * time.Second

// An output collects the output of a program.
type output struct {
	mu sync.Mutex
	// Guarded by mu.
	text    []byte
	changed chan struct{} // closed by the next write
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	close(o.changed)
	o.changed = make(chan struct{})
	return len(p), nil
}

func (o *output) String() string {
	text, _ := o.state()
	return text
}

func (o *output) state() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text), o.changed
}

// await waits until enough returns true for the output so far, and returns the output.
func (o *output) await(t *testing.T, what string, ended <-chan struct{}, enough func(text string) bool) string {
	t.Helper()
	late := time.After(testTimeout)
	for over := false; ; {
		text, changed := o.state()
		if enough(text) {
			return text
		}
		if over {
			t.Fatalf("the program ended without %s; it wrote:\n%s", what, text)
		}
		select {
		case <-changed:
		case <-ended:
			over = true
		case <-late:
			t.Fatalf("no %s; the program wrote:\n%s", what, text)
		}
	}
}

// lines waits for n complete lines and returns them.
func (o *output) lines(t *testing.T, n int, ended <-chan struct{}) []string {
	t.Helper()
	text := o.await(t, "enough lines", ended, func(text string) bool { return strings.Count(text, "\n") >= n })
	return strings.Split(text, "\n")[:n]
}

// A program is the program running within the test process.
type program struct {
	stdout, stderr *output
	interrupt      context.CancelFunc
	ended          chan struct{}
	code           int // valid after ended is closed
}

func start(t *testing.T, args ...string) *program {
	ctx, cancel := context.WithCancel(context.Background())
	p := &program{stdout: newOutput(), stderr: newOutput(), interrupt: cancel, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.code = cli.Execute(ctx, newRoot(), args, strings.NewReader(""), p.stdout, p.stderr)
	}()
	t.Cleanup(func() {
		cancel()
		<-p.ended
	})
	return p
}

// exit waits for the program to exit and returns the exit code.
func (p *program) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(testTimeout):
		t.Fatalf("the program does not end; it wrote:\n%s%s", p.stdout, p.stderr)
	}
	return p.code
}

// A runningServer is a program that serves.
type runningServer struct {
	*program
	http, https, debug string // URLs; empty if not served
}

// startServer runs serve on free ports and waits until it serves.
func startServer(t *testing.T, args ...string) *runningServer {
	t.Helper()
	if !strings.Contains(strings.Join(args, " "), "--addr") {
		args = append([]string{"--addr", "127.0.0.1:0"}, args...)
	}
	s := &runningServer{program: start(t, append([]string{"serve"}, args...)...)}
	want := 0
	for _, a := range args {
		if strings.HasSuffix(a, "addr") {
			want++
		}
	}
	// The text for each endpoint ends with an empty line.
	text := s.stdout.await(t, "addresses", s.ended, func(text string) bool { return strings.Count(text, "\n\n") >= 2*want })
	for line := range strings.Lines(text) {
		if url, ok := strings.CutPrefix(line, "Serving on "); ok {
			url, _, _ = strings.Cut(url, " ")
			if strings.HasPrefix(url, "https") {
				s.https = url
			} else {
				s.http = url
			}
		}
		if url, ok := strings.CutPrefix(line, "Debug endpoints on "); ok {
			s.debug, _, _ = strings.Cut(url, ",")
		}
	}
	return s
}

// request sends a request, and returns the status code, the header and the body of the
// response.
func request(t *testing.T, method, url, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(data)
}

func create(t *testing.T, base, path, name string) {
	t.Helper()
	if code, _, body := request(t, "POST", base+path, `{"metadata":{"name":"`+name+`"}}`); code != 201 {
		t.Fatalf("create %s: got %d %s", name, code, body)
	}
}

const podsPath = "/api/v1/namespaces/default/pods"

// curl runs a curl command in a shell. It returns the output and a channel that is closed
// when curl exits. It adds -N, because without a terminal curl buffers its output.
func curl(t *testing.T, line string) (*output, <-chan struct{}) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	cmd := exec.Command("sh", "-c", "exec "+strings.Replace(line, "curl ", "curl -N ", 1))
	out := newOutput()
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // fails if curl was killed
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("%s\nwrote:\n%s", line, errs.String())
		}
	})
	return out, ended
}

// certificates are PEM files with a CA, and certificates of a server and a client signed by
// it.
type certificates struct{ ca, server, serverKey, client, clientKey string }

func makeCertificates(t *testing.T) certificates {
	t.Helper()
	dir := t.TempDir()
	root, rootKey := certificate(t, &x509.Certificate{Subject: pkix.Name{CommonName: "test CA"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil, nil)
	c := certificates{ca: writePEM(t, dir, "ca.pem", "CERTIFICATE", root.Raw)}
	issue := func(name string, template *x509.Certificate) (string, string) {
		leaf, key := certificate(t, template, root, rootKey)
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return writePEM(t, dir, name+".pem", "CERTIFICATE", leaf.Raw), writePEM(t, dir, name+"-key.pem", "PRIVATE KEY", der)
	}
	c.server, c.serverKey = issue("server", &x509.Certificate{
		Subject: pkix.Name{CommonName: "server"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	c.client, c.clientKey = issue("client", &x509.Certificate{
		Subject: pkix.Name{CommonName: "ada", Organization: []string{"admins"}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return c
}

// certificate creates a certificate signed by parent, or self-signed if parent is nil.
func certificate(t *testing.T, template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func writePEM(t *testing.T, dir, name, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
