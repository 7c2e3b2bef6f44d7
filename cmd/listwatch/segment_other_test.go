//go:build !unix

package main

import "syscall"

// limitSegments does nothing, because this system has no such option.
func limitSegments(_, _ string, _ syscall.RawConn) error { return nil }
