package postgres

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// A network that drops all packets ends a connection, whether it waits for a response or has sent
// data that was not acknowledged.
func TestUnreachableServerIsNoticed(t *testing.T) {
	const limit = 2 * time.Second
	for name, sends := range map[string]bool{"waits": false, "sends": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dialBlackHole(t, limit)
			if sends {
				if _, err := conn.Write([]byte("SELECT")); err != nil {
					t.Fatal(err)
				}
			}
			if err := conn.SetReadDeadline(time.Now().Add(20 * limit)); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ETIMEDOUT) {
				t.Errorf("the read ended with %v, want ETIMEDOUT", err)
			}
		})
	}
}

// dialBlackHole returns a connection to a socket that drops all packets that it receives.
func dialBlackHole(t *testing.T, limit time.Duration) net.Conn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	conn, err := watchful(new(net.Dialer).DialContext, limit)(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	raw, err := server.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	// The filter accepts 0 bytes of each packet.
	drop := []syscall.SockFilter{{Code: syscall.BPF_RET | syscall.BPF_K}}
	var attached error
	err = raw.Control(func(fd uintptr) { attached = syscall.AttachLsf(int(fd), drop) })
	if err = errors.Join(err, attached); err != nil {
		t.Fatal(err)
	}
	return conn
}
