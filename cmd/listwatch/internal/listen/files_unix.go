//go:build unix

package listen

import "syscall"

// maxOpenFiles returns the limit of open files of this process, or 0 if it is unknown.
func maxOpenFiles() int64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil || l.Cur > 1<<40 {
		return 0
	}
	return int64(l.Cur)
}
