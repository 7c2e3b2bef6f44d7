//go:build !linux

package bolt

// lockHolder names the process that has the file locked; only Linux shows it.
func lockHolder(string) string { return "another process" }
