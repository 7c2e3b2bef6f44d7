// Package usage measures the resources of processes. It needs Linux.
package usage

import (
	"fmt"
	"os"
	"time"
)

// Usage holds the resources of a process.
type Usage struct {
	// CPU is the CPU time that the process has used so far.
	CPU time.Duration
	// Resident is the resident memory of the process in bytes.
	Resident int64
}

// Resident returns the resident memory of a process in bytes.
func Resident(pid int) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(data), &size, &resident); err != nil {
		return 0, fmt.Errorf("/proc/%d/statm: %w", pid, err)
	}
	return resident * int64(os.Getpagesize()), nil
}
