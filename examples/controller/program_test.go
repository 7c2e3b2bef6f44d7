package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestProgramRunsUntilInterrupted(t *testing.T) {
	program := filepath.Join(t.TempDir(), "controller")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	cmd := exec.Command(program)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, want := range []string{"started web-0", "started web-1", "started web-2"} {
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("the program printed %q, want %q", lines.Text(), want)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	for lines.Scan() { // until the program closes its output
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after an interrupt the program ended with %v, want exit code 0", err)
	}
}
