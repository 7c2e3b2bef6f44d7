package transport

import "net"

// Tune makes the kernel hold less for a peer of a connection that was taken over and doesn't read, and notice one that is gone. It
// does what the system can; a connection that is not TCP, or TLS over it, is left as it is.
func Tune(conn net.Conn) {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = t.NetConn()
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	_ = tcp.SetKeepAliveConfig(keepAlive)
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(limitUnsent)
	}
}
