package conformancecmd_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var ranCases = regexp.MustCompile(`(?m)^(?:pass|FAIL|skip) +(\S+/\S+)`)

// The suite tests a client that is wrong at first, and is fixed while the suite waits.
func TestWatchRunsAgainWhatFailed(t *testing.T) {
	program := listwatchProgram(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	dir := t.TempDir()
	adapter := filepath.Join(dir, "adapter.py")
	right, err := os.ReadFile("skeleton/client.py")
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(adapter, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.Replace(string(right), `"Accept": "application/json", **headers`, `"Accept": "application/json"`, 1))
	cmd := exec.CommandContext(t.Context(), program, "conformance", "client",
		"--exec", python+" "+adapter, "--watch", dir, "--run", "limit/redirect", "--run", "event/recreate", "--timeout",
		"1m")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	// round returns the cases of a run, and the line after it.
	round := func() (cases []string, text, last string) {
		for lines.Scan() {
			line := lines.Text()
			text += line + "\n"
			if m := ranCases.FindStringSubmatch(line); m != nil {
				cases = append(cases, m[1])
			}
			if strings.HasPrefix(line, "Waiting") {
				return cases, text, line
			}
		}
		t.Fatalf("the output ended: %v\n%s", lines.Err(), text)
		return nil, "", ""
	}
	if cases, text, last := round(); len(cases) < 2 || !strings.HasSuffix(last, "; 1 cases failed") {
		t.Fatalf("first run: got %q and %q, want two cases and one failure\n%s", cases, last, text)
	}
	write(string(right)) // the case that failed runs, then all cases
	cases, text, last := round()
	if len(cases) < 3 || cases[0] != "limit/redirect" || !strings.HasSuffix(last, "; 0 cases failed") {
		t.Errorf("then: got %q and %q, want limit/redirect, all cases and no failure\n%s", cases, last, text)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
}

// The adapter changes its own file in its first run, as a user might.
func TestWatchSeesAChangeDuringTheRun(t *testing.T) {
	program := listwatchProgram(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	dir := t.TempDir()
	right, err := os.ReadFile("skeleton/client.py")
	if err != nil {
		t.Fatal(err)
	}
	adapter := filepath.Join(dir, "adapter.py")
	saves := "text = open(__file__).read()\nopen(__file__, 'w').write(text.split('#' * 9)[1])\n#########\n"
	if err := os.WriteFile(adapter, append([]byte(saves), right...), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "conformance", "client",
		"--exec", python+" "+adapter, "--watch", dir, "--run", "event/recreate", "--timeout", "1m")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text, again := "", false
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		line := lines.Text()
		text += line + "\n"
		again = again || strings.HasPrefix(line, "Running again, because "+adapter)
		if strings.HasPrefix(line, "Waiting") {
			break
		}
	}
	if !again {
		t.Errorf("want a second run, got:\n%s", text)
	}
	if !strings.HasSuffix(text, "; 0 cases failed\n") {
		t.Errorf("want that no case fails in the last run, got:\n%s", text)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, stdout)
	if err := cmd.Wait(); err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
}
