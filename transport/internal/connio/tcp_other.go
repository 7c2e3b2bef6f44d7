//go:build !linux

package connio

// limitUnsent does nothing: the default of the system applies.
func limitUnsent(uintptr) {}
