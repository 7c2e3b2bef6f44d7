package listen

import (
	"io"
	"net"
	"testing"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
)

func TestConnectionsBeyondTheLimitAreClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	refused := make(chan bool, 1)
	limited := &limitedListener{Listener: l, max: 1, refused: func() { refused <- true }}
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
		c, _ := limited.Accept() // after first is closed
		accepted <- c
	}()
	<-refused
	if n, err := over.Read(make([]byte, 1)); err == nil {
		t.Errorf("the second connection got %d bytes, want its end", n)
	}
	first.Close()
	first.Close() // counts once
	innocent := dial()
	c := <-accepted
	defer c.Close()
	if _, err := io.WriteString(c, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := innocent.Read(make([]byte, 1)); err != nil {
		t.Errorf("a connection after the end of the first: %v", err)
	}
	if n := limited.open.Load(); n != 1 {
		t.Errorf("%d connections are counted, want 1", n)
	}
}

func TestDefaultLimitsAreBounded(t *testing.T) {
	for _, c := range []struct {
		watches, perClient int
		memory             int64
		all, one           int
	}{
		{0, 0, 1 << 30, 65_536, 32_768},
		{0, 0, -1, 0, 0},
		{3, 0, 1 << 30, 3, 2},
		{-1, 0, 1 << 30, -1, 0},
		{0, -1, 1 << 30, 65_536, -1},
		{10, 7, 1 << 30, 10, 7},
	} {
		o := limitOptions{watches: c.watches, watchesPerClient: c.perClient, memory: cli.ByteSize(c.memory)}
		if all, one := o.maxWatches(); all != c.all || one != c.one {
			t.Errorf("%+v: got %d and %d", c, all, one)
		}
	}
	files := maxOpenFiles()
	for connections, want := range map[int]int64{0: max(files-reservedFiles, files/2), 7: 7, -1: 0} {
		if got := (&limitOptions{connections: connections}).maxConnections(); got != want || connections == 0 && files > 0 && got >= files {
			t.Errorf("--max-connections %d: got %d with %d open files, want %d", connections, got, files, want)
		}
	}
}
