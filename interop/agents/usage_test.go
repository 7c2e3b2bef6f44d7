//go:build !race

package agents

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A process is the ID of a process whose resources are measured.
type process int

// ticks is the number of clock ticks of Linux in a second (proc_pid_stat(5), USER_HZ).
const ticks = 100

// cpu returns the processor time that p has used.
func (p process) cpu(t testing.TB) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p))
	if err != nil {
		t.Fatal(err)
	}
	// The name of the program may contain spaces. utime and stime are the fields 14 and 15.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	total := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return time.Duration(total) * time.Second / ticks
}

// memory returns the resident memory of p in MiB.
func (p process) memory(t testing.TB) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p))
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		t.Fatalf("/proc/%d/status has no VmRSS:\n%s", p, text)
	}
	kib, err := strconv.Atoi(fields[0])
	if err != nil {
		t.Fatal(err)
	}
	return float64(kib) / 1024
}
