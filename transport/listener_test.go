package transport_test

import (
	"io"
	"net"
	"testing"

	"github.com/listwatch/listwatch/transport"
)

func TestConnectionsBeyondTheLimitAreClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	refused := make(chan bool, 1)
	limited := &transport.LimitedListener{Listener: l, Max: 1, Refused: func() { refused <- true }}
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	dial()
	first, err := limited.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := first.(interface{ TCP() *net.TCPConn }); !ok {
		t.Error("transports cannot tell that the connection is TCP")
	}
	over := dial()
	accepted := make(chan net.Conn)
	go func() {
		c, _ := limited.Accept() // returns after the first connection is closed
		accepted <- c
	}()
	<-refused
	if n, err := over.Read(make([]byte, 1)); err == nil {
		t.Errorf("the second connection got %d bytes, want its end", n)
	}
	first.Close()
	first.Close() // must not be counted again
	innocent := dial()
	c := <-accepted
	defer c.Close()
	if _, err := io.WriteString(c, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := innocent.Read(make([]byte, 1)); err != nil {
		t.Errorf("a connection after the end of the first: %v", err)
	}
	if n := limited.Open(); n != 1 {
		t.Errorf("%d connections are counted, want 1", n)
	}
}
