//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// CPUTime returns the processor time that the server has used in all its processes. It needs
// Linux's /proc.
func (s *Server) CPUTime() (time.Duration, error) {
	server := strconv.Itoa(s.cmd.Process.Pid)
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("/proc has no processes: %w", err)
	}
	var ticks uint64
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		// The name of the program is in parentheses (proc(5)).
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		used := fields[11:13] // utime and stime
		switch server {
		case strings.Split(file, "/")[2]:
			used = fields[11:15] // and those of processes that have ended
		case fields[1]:
		default:
			continue
		}
		for _, field := range used {
			n, err := strconv.ParseUint(field, 10, 64)
			if err != nil {
				return 0, err
			}
			ticks += n
		}
	}
	const ticksPerSecond = 100 // on all platforms of Linux
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}
