package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
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
	p := &process{cmd: exec.Command(binary, args...), stdout: newOutput(), stderr: newOutput(), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), asProgramEnv+"=1")
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = p.stdout, p.stderr, attributes
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // the method exit returns the exit code
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
	text := p.stdout.await(t, "address; stderr: "+p.stderr.String(), p.ended, func(text string) bool { return strings.Contains(text, "\n\n") })
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

// The ports that freeAddress returns come in blocks. The test process listens at the first port of
// each of its blocks until it exits, so that no other process takes the same block.
const (
	firstPort, lastPort = 15_000, 20_000
	portBlock           = 50
)

var ports struct {
	mu sync.Mutex
	// Guarded by mu.
	next, end int            // the unused ports of the current block
	blocks    []net.Listener // at the first port of each block
}

// freeAddress returns a free loopback address, and never the same one twice: parallel tests restart
// their servers at these addresses. Its port is below the range of ephemeral ports, so no outgoing
// connection takes it while the server restarts.
func freeAddress(t *testing.T) string {
	t.Helper()
	ports.mu.Lock()
	defer ports.mu.Unlock()
	for {
		for ports.next < ports.end {
			address := loopback(ports.next)
			ports.next++
			if l, err := net.Listen("tcp", address); err == nil {
				l.Close()
				return address
			}
		}
		if !takePortBlock() {
			t.Fatalf("no port between %d and %d is free", firstPort, lastPort)
		}
	}
}

// takePortBlock makes a free block the current one. It returns false if no block is free. The
// caller holds ports.mu.
func takePortBlock() bool {
	const count = (lastPort - firstPort) / portBlock
	for _, i := range rand.Perm(count) {
		first := firstPort + i*portBlock
		if l, err := net.Listen("tcp", loopback(first)); err == nil {
			ports.blocks = append(ports.blocks, l)
			ports.next, ports.end = first+1, first+portBlock
			return true
		}
	}
	return false
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
