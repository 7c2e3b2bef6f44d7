//go:build !unix

package listen

// maxOpenFiles returns 0, because the limit of open files is unknown.
func maxOpenFiles() int64 { return 0 }
