package transport

import (
	"net"
	"sync"
	"sync/atomic"
)

// A LimitedListener counts the open connections that a listener has accepted. While Max of them are
// open, it closes each new connection at once, so that clients cannot use up the file descriptors
// of the process. It is safe for concurrent use. Its fields must not be changed after the first
// Accept.
type LimitedListener struct {
	net.Listener
	// Max is the maximum number of open connections. If zero or negative, there is no limit.
	Max int64
	// Refused, if not nil, is called for each connection that was closed because of Max.
	Refused func()

	open atomic.Int64
}

// Open returns the number of open TCP connections. Other connections are neither counted nor
// limited.
func (l *LimitedListener) Open() int64 { return l.open.Load() }

// Accept returns the next connection that does not exceed the limit.
func (l *LimitedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		tcp, ok := c.(*net.TCPConn)
		if err != nil || !ok {
			return c, err
		}
		if n := l.open.Add(1); l.Max <= 0 || n <= l.Max {
			return &countedConn{TCPConn: tcp, closed: func() { l.open.Add(-1) }}, nil
		}
		l.open.Add(-1)
		c.Close()
		if l.Refused != nil {
			l.Refused()
		}
	}
}

// A countedConn decrements the number of open connections when it is closed.
type countedConn struct {
	*net.TCPConn
	once   sync.Once
	closed func()
}

// TCP returns the wrapped connection, so that transports recognize c as a TCP connection.
func (c *countedConn) TCP() *net.TCPConn { return c.TCPConn }

// Close closes the connection.
func (c *countedConn) Close() error {
	c.once.Do(c.closed)
	return c.TCPConn.Close()
}
