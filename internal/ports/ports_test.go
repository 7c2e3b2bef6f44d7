package ports

import (
	"net"
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
