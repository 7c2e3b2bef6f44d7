//go:build unix

package main

import (
	"errors"
	"syscall"
)

// limitSegments asks the other end of a connection for segments of 536 bytes.
func limitSegments(_, _ string, c syscall.RawConn) (err error) {
	controlErr := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, 536)
	})
	return errors.Join(controlErr, err)
}
