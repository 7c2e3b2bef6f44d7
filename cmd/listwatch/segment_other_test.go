//go:build !unix

package main

import "syscall"

// limitSegments does nothing, because this system has no option for the size of segments.
func limitSegments(_, _ string, _ syscall.RawConn) error { return nil }
