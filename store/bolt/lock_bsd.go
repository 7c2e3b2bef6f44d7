//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package bolt

import (
	"os"
	"syscall"
)

// unlock removes bbolt's lock from f. Closing f is not enough while it is mapped into memory,
// because the mapping keeps it open.
func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// lockHolder names the process that has locked a file. This is possible only on Linux.
func lockHolder(string) string { return "another process" }
