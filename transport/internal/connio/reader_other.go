//go:build !unix

package connio

import (
	"bufio"
	"io"
	"net"
)

// NewReader returns a buffered reader of conn.
func NewReader(conn net.Conn) io.Reader { return bufio.NewReaderSize(conn, 4<<10) }
