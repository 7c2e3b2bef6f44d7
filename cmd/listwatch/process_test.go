package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// process is the program, running as a separate process.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *output
	ended          chan struct{}
}

// startProcess starts the program. attributes may be nil.
func startProcess(t *testing.T, attributes *syscall.SysProcAttr, args ...string) *process {
	t.Helper()
	return startBinary(t, os.Args[0], attributes, args...)
}

// startBinary is like startProcess, but runs the given copy of the test binary.
func startBinary(t *testing.T, binary string, attributes *syscall.SysProcAttr, args ...string) *process {
	t.Helper()
	p := &process{
		cmd: exec.Command(binary, args...), stdout: newOutput(), stderr: newOutput(),
		ended: make(chan struct{}),
	}
	p.cmd.Env = append(os.Environ(), asProgramEnv+"=1")
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = p.stdout, p.stderr, attributes
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // exit returns the exit code
	}()
	t.Cleanup(p.kill)
	return p
}

// kill kills the process, unless it has already exited.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails if the process has already exited
	<-p.ended
}

// awaitURL waits until the process serves, and returns its URL.
func (p *process) awaitURL(t *testing.T) (url string) {
	t.Helper()
	text := p.stdout.await(t, "address; stderr: "+p.stderr.String(), p.ended,
		func(text string) bool { return strings.Contains(text, "\n\n") })
	_, url, _ = strings.Cut(text, "Serving on ")
	url, _, _ = strings.Cut(url, " ")
	return url
}

// firstOutput returns a channel that is closed when the process has written to stdout.
func (p *process) firstOutput() <-chan struct{} {
	text, changed := p.stdout.state()
	if text == "" {
		return changed
	}
	written := make(chan struct{})
	close(written)
	return written
}

// exit waits for the process to exit, and returns its exit code and stderr.
func (p *process) exit() (code int, stderr string) {
	<-p.ended
	return p.cmd.ProcessState.ExitCode(), p.stderr.String()
}
