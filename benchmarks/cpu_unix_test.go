//go:build unix

package benchmarks

import (
	"syscall"
	"time"
)

// processorTime returns the processor time that this process has used so far.
func processorTime() (time.Duration, error) {
	var r syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), err
}
