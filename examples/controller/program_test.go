package main

import (
	"bufio"
	"os"
	"os/exec"
	"testing"
)

// runProgram is the environment variable that makes the test binary run the program instead of the
// tests, so that the test need not compile the program.
const runProgram = "CONTROLLER_TEST_RUN_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(runProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestProgramRunsUntilInterrupted(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), runProgram+"=1")
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
