//go:build !linux

package connio

import "net"

// limitUnsent does nothing: the default of the system applies.
func limitUnsent(uintptr) {}

// acknowledged returns false: the number is unknown.
func acknowledged(*net.TCPConn) (n uint64, ok bool) { return 0, false }
