//go:build !linux

package transport

// limitUnsent does nothing: the system's own limit stays.
func limitUnsent(uintptr) {}
