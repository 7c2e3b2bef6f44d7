//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package bolt

import (
	"os"
	"syscall"
)

// unlock takes bbolt's lock off f. To close f would not be enough where it is still mapped into memory: a mapping keeps it open.
func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
