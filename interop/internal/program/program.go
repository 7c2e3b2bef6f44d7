// Package program runs the program listwatch for tests.
package program

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/listwatch/listwatch/internal/testbuild"
)

// logTail is the length of the end of the log that a failed test prints.
const logTail = 4000

// Build compiles the program and returns its path. The test must be in a folder of interop.
func Build(t *testing.T) (path string) { return testbuild.Program(t, "../../cmd/listwatch") }

// A Process is a running listwatch. It is safe for concurrent use.
type Process struct {
	*exec.Cmd
	// URLs are the addresses at which it serves or relays: in clear text, over TLS, or both.
	URLs []string

	mu  sync.Mutex
	log bytes.Buffer // guarded by mu
}

// Start runs the program at path until the test ends. It returns when the program accepts requests.
func Start(t testing.TB, path string, args ...string) *Process {
	t.Helper()
	p := &Process{Cmd: exec.Command(path, args...)}
	p.Stderr = (*logWriter)(p)
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if log := p.Log(); t.Failed() {
			t.Logf("the end of the log of listwatch %s:\n%s", args[0], log[max(0, len(log)-logTail):])
		}
	})
	lines := bufio.NewScanner(out)
	for len(p.URLs) < listeners(args) && lines.Scan() {
		_, rest, found := strings.Cut(lines.Text(), "ing on ") // Serving on, Relaying on
		if url, _, _ := strings.Cut(rest, " "); found && strings.HasPrefix(url, "http") {
			p.URLs = append(p.URLs, url)
		}
	}
	if len(p.URLs) < listeners(args) {
		t.Fatalf("listwatch %s has printed the URLs %q, %v", args[0], p.URLs, lines.Err())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // returns when the program exits
	return p
}

// listeners returns the number of URLs that the program prints if it has these arguments.
func listeners(args []string) int {
	n := 1
	if slices.Contains(args, "--tls-addr") {
		n++
	}
	if i := slices.Index(args, "--addr"); i >= 0 && args[i+1] == "" {
		n--
	}
	return n
}

// URL returns the first of the URLs.
func (p *Process) URL() string { return p.URLs[0] }

// Log returns what the program has logged.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Kill ends the program, which may have exited, and waits for it.
func (p *Process) Kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// A logWriter is the standard error of a Process.
type logWriter Process

func (w *logWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(b)
}
