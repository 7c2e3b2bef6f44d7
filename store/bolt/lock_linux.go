package bolt

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// unlock removes bbolt's lock from f. Closing f is not enough while it is mapped into memory,
// because the mapping keeps it open.
func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// lockHolder names the process that has locked the file at path, if the kernel shows it.
func lockHolder(path string) string {
	const unknown = "another process"
	info, err := os.Stat(path)
	if err != nil {
		return unknown
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return unknown
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return unknown
	}
	defer func() { _ = locks.Close() }() // nothing was written to it
	dev := uint64(stat.Dev)
	major, minor := dev>>8&0xfff|dev>>32&^0xfff, dev&0xff|dev>>12&^0xff
	inode := fmt.Sprintf("%02x:%02x:%d", major, minor, stat.Ino)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		// A line of /proc/locks: 1: FLOCK ADVISORY WRITE 4711 fd:00:131 0 EOF
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[1] != "FLOCK" || f[5] != inode {
			continue
		}
		name, err := os.ReadFile("/proc/" + f[4] + "/comm")
		if err != nil {
			return "process " + f[4]
		}
		return fmt.Sprintf("process %s (%s)", f[4], strings.TrimSpace(string(name)))
	}
	return unknown
}
