package ports

import (
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"
)

func TestPortsAreReservedOnce(t *testing.T) {
	seen := make(map[int]bool)
	for i := range 3 * blockSize {
		n := 1 + i%3
		port := ReserveRange(t, n)
		for p := port; p < port+n; p++ {
			if seen[p] || p < first || p >= last {
				t.Fatalf("port %d was reserved twice, or is not in the range", p)
			}
			seen[p] = true
		}
	}
}

func TestUsedPortsAreNotReserved(t *testing.T) {
	for next == end { // take a new block if all ports of the current one are used
		Reserve(t)
	}
	l, err := net.Listen("tcp", address(next))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got, used := Address(t), l.Addr().String(); got == used {
		t.Errorf("got %s, at which the test listens", got)
	}
}

func TestPortIsFreeWhileProcessesStart(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var starting sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		starting.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := exec.Command(program, "-test.run=^$").Run(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	addr := Address(t)
	for range 2000 {
		l, err := Listen(addr)
		if err != nil {
			t.Error(err)
			break
		}
		l.Close()
	}
	close(done)
	starting.Wait()
}
