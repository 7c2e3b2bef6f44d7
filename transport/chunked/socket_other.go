//go:build !linux

package chunked

// limitUnsent does nothing: the system's own limit stays.
func limitUnsent(uintptr) {}
