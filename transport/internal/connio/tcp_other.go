//go:build !linux

package connio

import "net"

// limitUnsent does nothing: the default of the system applies.
func limitUnsent(uintptr) {}

// queued returns false: the number is unknown.
func queued(*net.TCPConn) (n int, ok bool) { return 0, false }
