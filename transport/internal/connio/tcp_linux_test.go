package connio

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTuneTCPLimitsUnsentBytes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	TuneTCP(conn)
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var got int
	var fault error
	raw.Control(func(fd uintptr) { got, fault = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT) })
	if got != unsentBytes || fault != nil {
		t.Errorf("TCP_NOTSENT_LOWAT is %d, %v; want %d", got, fault, unsentBytes)
	}
}
