//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package bolt

import "os"

// unlock does nothing: the lock is released when the process ends.
func unlock(*os.File) error { return nil }

// lockHolder names the process that has locked a file. This is possible only on Linux.
func lockHolder(string) string { return "another process" }
