//go:build unix

package usage

import (
	"syscall"
	"time"
)

// CPU returns the CPU time that this process has used so far.
func CPU() (time.Duration, error) {
	var r syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), err
}
