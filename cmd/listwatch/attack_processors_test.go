package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// processorTicks are times in /proc's unit, since the machine was started. They are 0 on systems
// other than Linux.
type processorTicks struct {
	all    int64 // of all processors, including the time in which they were idle
	others int64 // used by programs other than the test, the attackers and the server
}

func (s *attackedServer) processorTicks() (p processorTicks) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return p // not Linux
	}
	// user, nice, system, idle, iowait, irq, softirq and steal, as in proc_stat(5). Interrupts are
	// not counted as the work of others, since the attacks cause most of them.
	line, _, _ := strings.Cut(strings.TrimPrefix(string(data), "cpu"), "\n")
	machine := numbers(line)[:8]
	for _, n := range machine {
		p.all += n
	}
	p.others = machine[0] + machine[1] + machine[2] + machine[7]
	// utime, stime, cutime and cstime, as in proc_pid_stat(5). The attackers are children of the
	// test.
	for _, n := range slices.Concat(processStat(os.Getpid())[11:15], processStat(s.process.cmd.Process.Pid)[11:13]) {
		p.others -= n
	}
	return p
}

// processStat returns the numbers that follow the name of a process in /proc/PID/stat.
func processStat(pid int) []int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return make([]int64, 15) // the process has exited
	}
	return numbers(string(data[bytes.LastIndexByte(data, ')')+1:]))
}

// numbers returns the fields of a line, and 0 for those that are not numbers.
func numbers(line string) (all []int64) {
	for field := range strings.FieldsSeq(line) {
		n, _ := strconv.ParseInt(field, 10, 64)
		all = append(all, n)
	}
	return all
}

// shareSince returns the share of the processors that other programs have left to the test and the
// server since before. It is at least a twentieth.
func (p processorTicks) shareSince(before processorTicks) float64 {
	if p.all == before.all {
		return 1
	}
	return min(1, max(0.05, 1-float64(p.others-before.others)/float64(p.all-before.all)))
}
