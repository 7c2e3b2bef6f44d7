//go:build !unix

package connio

import (
	"bufio"
	"net"
)

// NewReader returns a Reader of conn.
func NewReader(conn net.Conn) Reader { return bufio.NewReaderSize(conn, 4<<10) }
