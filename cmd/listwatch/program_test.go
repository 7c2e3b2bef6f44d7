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
	"github.com/listwatch/listwatch/internal/testkit"
)

// asProgramEnv is the environment variable that makes the test binary act as the program.
// Tests that kill a process use it.
const asProgramEnv = "LISTWATCH_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgramEnv) != "" {
		main()
	}
	if attack := os.Getenv(attackerEnv); attack != "" {
		runAttacker(attack)
	}
	leaktest.Main(m)
}

// testTimeout limits the time that a test waits for output. It is long enough for a busy machine,
// on which a process may need half a minute to start.
const testTimeout = 3 * time.Minute

// output collects what a program writes.
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

// await waits until enough(text) is true for the text written so far, and returns that
// text.
func (o *output) await(t *testing.T, what string, ended <-chan struct{}, enough func(text string) bool) string {
	t.Helper()
	late := time.After(testTimeout)
	for over := false; ; {
		text, changed := o.state()
		if enough(text) {
			return text
		}
		if over {
			t.Fatalf("the program exited before it wrote %s; it wrote:\n%s", what, text)
		}
		select {
		case <-changed:
		case <-ended:
			over = true
		case <-late:
			t.Fatalf("timeout waiting for %s; the program wrote:\n%s", what, text)
		}
	}
}

// lines waits for n complete lines and returns them.
func (o *output) lines(t *testing.T, n int, ended <-chan struct{}) []string {
	t.Helper()
	text := o.await(t, "enough lines", ended, func(text string) bool { return strings.Count(text, "\n") >= n })
	return strings.Split(text, "\n")[:n]
}

// program is a run of the program within the test process.
type program struct {
	stdout, stderr *output
	interrupt      context.CancelFunc
	ended          chan struct{}
	code           int // read only after ended is closed
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
		t.Fatalf("timeout waiting for the program to exit; it wrote:\n%s%s", p.stdout, p.stderr)
	}
	return p.code
}

// runningServer is a program that runs serve or relay.
type runningServer struct {
	*program
	http, https, debug string // base URLs, empty if there is no such listener
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
	// The program prints two paragraphs for each listener.
	text := s.stdout.await(t, "addresses", s.ended,
		func(text string) bool { return strings.Count(text, "\n\n") >= 2*want })
	for line := range strings.Lines(text) {
		if url, ok := strings.CutPrefix(line, "Serving on "); ok {
			url, _, _ = strings.Cut(url, " ")
			if strings.HasPrefix(url, "https") {
				s.https = url
			} else {
				s.http = url
			}
		}
		if url, ok := strings.CutPrefix(line, "Debug endpoints and the console on "); ok {
			s.debug, _, _ = strings.Cut(url, ",")
		}
	}
	return s
}

// request sends a request, and returns the status code, the header and the body of the
// response.
func request(t *testing.T, method, url, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	res := testkit.Do(t, transport, method, url, body, header...)
	return res.StatusCode, res.Header, testkit.Body(t, res)
}

func create(t *testing.T, base, path, name string) {
	t.Helper()
	if code, _, body := request(t, "POST", base+path, `{"metadata":{"name":"`+name+`"}}`); code != 201 {
		t.Fatalf("create %s: got %d %s, want 201", name, code, body)
	}
}

const podsPath = "/api/v1/namespaces/default/pods"

// curl runs a curl command line in a shell. It returns the output, and a channel that is
// closed when curl exits. It adds -N because curl otherwise buffers output that does not go
// to a terminal.
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
		_ = cmd.Wait() // returns an error if the test killed curl
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

// certificates holds the names of PEM files: a CA, and certificates of a server and a
// client that the CA has signed.
type certificates struct{ ca, server, serverKey, client, clientKey string }

func makeCertificates(t *testing.T) certificates {
	t.Helper()
	dir := t.TempDir()
	root, rootKey := certificate(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "test CA"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	c := certificates{ca: writePEM(t, dir, "ca.pem", "CERTIFICATE", root.Raw)}
	issue := func(name string, template *x509.Certificate) (string, string) {
		leaf, key := certificate(t, template, root, rootKey)
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return writePEM(t, dir, name+".pem", "CERTIFICATE", leaf.Raw),
			writePEM(t, dir, name+"-key.pem", "PRIVATE KEY", der)
	}
	c.server, c.serverKey = issue("server", &x509.Certificate{
		Subject: pkix.Name{CommonName: "server"}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	c.client, c.clientKey = issue("client", &x509.Certificate{
		Subject:     pkix.Name{CommonName: "ada", Organization: []string{"admins"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return c
}

// certificate creates a certificate signed by parent, or self-signed if parent is nil.
func certificate(t *testing.T, template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate,
	*ecdsa.PrivateKey,
) {
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
