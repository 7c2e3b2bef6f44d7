package testbuild

import (
	"bufio"
	"net/url"
	"os/exec"
	"strings"
	"testing"
)

// Serve compiles the main package in the directory dir, and runs it with args until the test ends.
// It returns the URL that the program prints after "open " in its first line on standard error.
func Serve(t *testing.T, dir string, args ...string) *url.URL {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Program(t, dir), args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails only if the program has exited already
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stderr).ReadString('\n')
	_, address, found := strings.Cut(strings.TrimSpace(line), "open ")
	if err != nil || !found {
		t.Fatalf("the program printed %q, %v; want its URL", line, err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
