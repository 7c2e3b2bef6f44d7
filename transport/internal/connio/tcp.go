package connio

import (
	"io"
	"net"
	"time"
)

// KeepAlive detects a vanished peer within about a minute, and keeps middleboxes from closing an
// idle connection.
var KeepAlive = net.KeepAliveConfig{Enable: true, Idle: 20 * time.Second, Interval: 10 * time.Second, Count: 4}

// TuneTCP limits the memory that the kernel uses for a client that does not read, and
// enables [KeepAlive], if the system supports it. It does not change a connection
// that is neither TCP nor TLS over TCP.
func TuneTCP(conn net.Conn) {
	tcp, ok := TCP(beneathTLS(conn))
	if !ok {
		return
	}
	_ = tcp.SetKeepAliveConfig(KeepAlive)
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(limitUnsent)
	}
}

// A Tunnel is the connection of a WebSocket that is hijacked from HTTP/2. It shares the HTTP/2
// connection with other streams.
type Tunnel interface {
	net.Conn
	// Go calls f when the tunnel may send, and Run calls f at once. See transport.Scheduler.
	Go(f func())
	Run(f func())
	// WriteFrames writes frames, which must never change again. It keeps the frames that the peer
	// does not accept yet, without copying them. A write fails if it has not finished by the
	// deadline.
	WriteFrames(frames [][]byte) error
	// Abort resets the stream.
	Abort()
}

// Cut closes conn without a TLS alert, because an alert would block if the peer does not read. It
// aborts a Tunnel.
func Cut(conn io.Closer) {
	if t, ok := conn.(Tunnel); ok {
		t.Abort()
		return
	}
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = t.NetConn()
	}
	conn.Close()
}

// The bounds of [Linger].
const (
	LingerTime  = time.Second
	LingerBytes = 1 << 20
)

// Linger closes the writing side of conn and discards what the peer still sends. It returns when
// the peer closes the connection, after [LingerTime], or after [LingerBytes]. Closing a connection
// with unread bytes resets it, and a reset could destroy the last bytes on their way to the peer.
func Linger(conn interface {
	io.Reader
	SetReadDeadline(t time.Time) error
},
) {
	if h, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
	}
	_ = conn.SetReadDeadline(time.Now().Add(LingerTime))
	_, _ = io.CopyN(io.Discard, conn, LingerBytes)
}

// CloseWrite closes the writing side of conn and, with TLS, of the underlying connection. After a
// failure the peer sees the end of conn only when conn is closed.
func CloseWrite(conn net.Conn) {
	type halfCloser interface{ CloseWrite() error }
	if c, ok := conn.(halfCloser); ok {
		_ = c.CloseWrite()
	}
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		if c, ok := t.NetConn().(halfCloser); ok {
			_ = c.CloseWrite()
		}
	}
}

// TCP returns conn if it is a TCP connection, or the result of its method TCP. A wrapper has this
// method if it does not change the bytes that are read and written.
func TCP(conn any) (tcp *net.TCPConn, ok bool) {
	if wrapper, ok := conn.(interface{ TCP() *net.TCPConn }); ok {
		return wrapper.TCP(), true
	}
	tcp, ok = conn.(*net.TCPConn)
	return tcp, ok
}

// Reset closes conn without a TLS alert. The peer sees a TCP reset if the network
// supports resets.
func Reset(conn net.Conn) {
	conn = beneathTLS(conn)
	if l, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = l.SetLinger(0)
	}
	conn.Close()
}

func beneathTLS(conn net.Conn) net.Conn {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		return t.NetConn()
	}
	return conn
}

// Acknowledged returns the number of bytes written to conn that the peer has acknowledged,
// including the bytes that TLS adds. It is always zero if the system does not know the number, or
// if conn is neither TCP nor TLS over TCP. Another connection can report the number with a method
// Acknowledged.
func Acknowledged(conn net.Conn) uint64 {
	conn = beneathTLS(conn)
	if a, ok := conn.(interface{ Acknowledged() uint64 }); ok {
		return a.Acknowledged()
	}
	if tcp, ok := TCP(conn); ok {
		return acknowledged(tcp)
	}
	return 0
}
