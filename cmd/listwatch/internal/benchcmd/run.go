package benchcmd

import (
	"encoding/json"
	"net"
	"sync/atomic"

	"github.com/listwatch/listwatch/client"
)

// A bench measures a target with one transport after the other.
type bench struct {
	*options
	target   target
	template map[string]json.RawMessage
	progress *progress
}

// A run is the measurement of one transport.
type run struct {
	*bench
	transport string
	writer    *writer
	recorder  *recorder
	reader    *client.Remote // opens the watches
	bytes     atomic.Int64   // bytes that the watches received, on the wire
	readOnly  error          // the reason for not writing, or nil
}

// A countingConn counts the received bytes.
type countingConn struct {
	net.Conn
	received *atomic.Int64
}

// Read implements net.Conn.
func (c *countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}
