// Package ports reserves TCP ports for servers that must listen at a known address, for example
// because they are restarted.
package ports

import (
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The ports are below the ephemeral ones, which the system gives to connections and to listeners at
// port 0. A process takes the ports in blocks. It listens at the first port of each of its blocks
// until it exits, so that no other process takes the same block.
const (
	first, last = 20000, 32000
	blockSize   = 50
)

var (
	mu sync.Mutex
	// Guarded by mu.
	next, end int            // the unused ports of the current block
	blocks    []net.Listener // at the first port of each block of this process
)

// Reserve returns a port of 127.0.0.1 that is free and that no other call returns, in any process.
func Reserve(t testing.TB) int { return ReserveRange(t, 1) }

// ReserveRange is like Reserve for n consecutive ports, and returns the first one. n must be less
// than 50.
func ReserveRange(t testing.TB, n int) int {
	t.Helper()
	if n >= blockSize {
		t.Fatalf("cannot reserve %d ports: a block has %d", n, blockSize-1)
	}
	mu.Lock()
	defer mu.Unlock()
	for {
		for next+n <= end {
			port, used := next, usedPort(next, n)
			if used == 0 {
				next += n
				return port
			}
			next = used + 1
		}
		if !takeBlock() {
			t.Fatalf("found no %d free ports between %d and %d", n, first, last)
		}
	}
}

// Address returns a reserved address of the form 127.0.0.1:PORT.
func Address(t testing.TB) string {
	t.Helper()
	return address(Reserve(t))
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// usedPort returns the highest of the n ports starting at port that another program uses, or 0 if
// all are free.
func usedPort(port, n int) int {
	for p := port + n - 1; p >= port; p-- {
		l, err := net.Listen("tcp", address(p))
		if err != nil {
			return p
		}
		l.Close()
	}
	return 0
}

// Listen listens at a reserved address. While the address is in use, Listen tries again for some
// seconds: a process that is being started keeps a copy of each socket of its parent until it runs
// its program, even of sockets that the parent has closed.
func Listen(address string) (net.Listener, error) {
	retry, timeout := time.Tick(time.Millisecond), time.After(5*time.Second)
	for {
		l, err := net.Listen("tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
		select {
		case <-retry:
		case <-timeout:
			return nil, err
		}
	}
}

// takeBlock makes the next free block the current one. It returns false if no block is free.
func takeBlock() bool {
	const count = (last - first) / blockSize
	for i := range count {
		start := first + (os.Getpid()+i)%count*blockSize
		if l, err := net.Listen("tcp", address(start)); err == nil {
			blocks = append(blocks, l)
			next, end = start+1, start+blockSize
			return true
		}
	}
	return false
}
