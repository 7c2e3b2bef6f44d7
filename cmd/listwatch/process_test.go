package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A process is the real command, as a process of its own.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *output
	ended          chan struct{}
}

// startProcess runs the program; attributes may be nil.
func startProcess(t *testing.T, attributes *syscall.SysProcAttr, args ...string) *process {
	t.Helper()
	return startBinary(t, os.Args[0], attributes, args...)
}

// startBinary is startProcess with a copy of the test binary.
func startBinary(t *testing.T, binary string, attributes *syscall.SysProcAttr, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(binary, args...), stdout: newOutput(), stderr: newOutput(), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), asProgramEnv+"=1")
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = p.stdout, p.stderr, attributes
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the exit code says it
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends the process by SIGKILL, if it hasn't ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// serves waits until the process says that it serves on an address, and returns its URL.
func (p *process) awaitURL(t *testing.T) (url string) {
	t.Helper()
	text := p.stdout.await(t, "address; it said "+p.stderr.String(), p.ended, func(text string) bool { return strings.Contains(text, "\n\n") })
	_, url, _ = strings.Cut(text, "Serving on ")
	url, _, _ = strings.Cut(url, " ")
	return url
}

// started returns a channel that is closed once the process has said something on stdout.
func (p *process) firstOutput() <-chan struct{} {
	_, changed := p.stdout.state()
	return changed
}

// exit waits for the end and returns the exit code and what was said on stderr.
func (p *process) exit() (code int, said string) {
	<-p.ended
	return p.cmd.ProcessState.ExitCode(), p.stderr.String()
}

// freeAddress returns an address of loopback that nobody listens at, and that stays free while a server is away: it is below the ports that
// systems give to outgoing connections.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no port between 20000 and 30000 is free")
	return ""
}
