// Package program runs the program listwatch for tests.
package program

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// logTail is the length of the end of the log that a failed test prints.
const logTail = 4000

// Start runs the program at path until the test ends. It returns the first URL that the program
// prints, at which it serves or relays.
func Start(t testing.TB, path string, args ...string) (url string) {
	t.Helper()
	c := exec.Command(path, args...)
	var logs bytes.Buffer
	c.Stderr = &logs
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // the process may have exited
		_ = c.Wait()
		if t.Failed() {
			t.Logf("the end of the log of listwatch %s:\n%s", args[0], logs.Bytes()[max(0, logs.Len()-logTail):])
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		_, rest, ok := strings.Cut(lines.Text(), "ing on ") // Serving on, Relaying on
		if url, _, _ = strings.Cut(rest, " "); ok && strings.HasPrefix(url, "http") {
			go func() { _, _ = io.Copy(io.Discard, out) }() // returns when the program exits
			return url
		}
	}
	t.Fatalf("listwatch %s has printed no URL", args[0])
	return ""
}
