//go:build !linux

package connio

import "net"

// limitUnsent does nothing: the default of the system applies.
func limitUnsent(uintptr) {}

// acknowledged returns zero: the number is unknown.
func acknowledged(*net.TCPConn) uint64 { return 0 }
