package informer

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

// The server of a benchmark is a process of its own, and so is each contestant: what one allocates is not in the heap of another, and each
// begins with an empty one, as a program does. Parent and child talk in lines.
const childEnv = "LISTWATCH_BENCH_INFORMER" // "server DATA" or "client DATA KIND URL"

func TestMain(m *testing.M) {
	role := strings.Fields(os.Getenv(childEnv))
	if len(role) == 0 {
		os.Exit(m.Run())
	}
	var err error
	switch lines := (lines{in: bufio.NewReader(os.Stdin), out: os.Stdout}); role[0] {
	case "server":
		err = serve(lines, datasets[role[1]])
	case "client":
		err = measure(lines, role[1], role[2], role[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, role, err)
		os.Exit(1)
	}
}

// lines is one end of the talk.
type lines struct {
	in  *bufio.Reader
	out io.Writer
}

// ask says a line and returns the answer.
func (l lines) ask(text string) (string, error) {
	if _, err := fmt.Fprintln(l.out, text); err != nil {
		return "", err
	}
	return l.hear()
}

func (l lines) hear() (string, error) {
	line, err := l.in.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// A child is the parent's end.
type child struct {
	testing.TB
	lines
}

// start starts a child that ends with the benchmark at the latest.
func start(b *testing.B, role string) (c child, end func()) {
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
	return child{b, lines{bufio.NewReader(out), in}}, func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
}

// must returns what a child answered.
func (c child) must(line string, err error) string {
	c.Helper()
	if err != nil {
		c.Fatalf("a child said %q: %v", line, err)
	}
	return line
}

// say tells a child something that it doesn't answer.
func (c child) say(line string) {
	c.Helper()
	if _, err := fmt.Fprintln(c.out, line); err != nil {
		c.Fatal(err)
	}
}

// cost reads what a client has measured.
func (c child) cost() (measured cost) {
	c.Helper()
	line := c.must(c.hear())
	if err := json.Unmarshal([]byte(line), &measured); err != nil {
		c.Fatalf("a client said %q: %v", line, err)
	}
	return measured
}
