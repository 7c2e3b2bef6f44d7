package kubernetes

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The server and each client of a benchmark run in separate processes, so that the heap of
// one does not contain the objects of another. They exchange lines with the benchmark over
// pipes.
//
// childEnv is the environment variable with the role of such a process: "server DATA" or
// "client DATA KIND URL".
const childEnv = "LISTWATCH_BENCH_INFORMER"

// runChild is the main function of a process with the given role. If the role fails, runChild
// exits with status 1.
func runChild(role string) {
	words := strings.Fields(role)
	var err error
	switch lines := (linePipe{in: bufio.NewReader(os.Stdin), out: os.Stdout}); words[0] {
	case "server":
		err = runBenchServer(lines, datasets[words[1]])
	case "client":
		err = runBenchClient(lines, words[1], words[2], words[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, role, err)
		os.Exit(1)
	}
}

// A linePipe is one end of the communication between a benchmark and its processes.
type linePipe struct {
	in  *bufio.Reader
	out io.Writer
}

// request sends a line and returns the response.
func (l linePipe) request(text string) (string, error) {
	if _, err := fmt.Fprintln(l.out, text); err != nil {
		return "", err
	}
	return l.receive()
}

func (l linePipe) receive() (string, error) {
	line, err := l.in.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// A childProcess is a process of a benchmark.
type childProcess struct {
	testing.TB
	linePipe
}

// startChild starts a process, which exits when stop is called or when the benchmark exits.
func startChild(b *testing.B, role string) (c childProcess, stop func()) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return childProcess{b, linePipe{bufio.NewReader(out), in}}, func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
}

// must is called as c.must(c.request(text)). It returns the response, and fails the benchmark
// if err is not nil.
func (c childProcess) must(line string, err error) string {
	c.Helper()
	if err != nil {
		c.Fatalf("a child process sent %q: %v", line, err)
	}
	return line
}

// send sends a line to which the process does not respond.
func (c childProcess) send(line string) {
	c.Helper()
	if _, err := fmt.Fprintln(c.out, line); err != nil {
		c.Fatal(err)
	}
}

// receiveUsage receives the result of a client.
func (c childProcess) receiveUsage() (measured usage) {
	c.Helper()
	line := c.must(c.receive())
	if err := json.Unmarshal([]byte(line), &measured); err != nil {
		c.Fatalf("a client sent %q: %v", line, err)
	}
	return measured
}
