// Package leaktest fails a package's tests where goroutines are left when they are over. A goroutine that nobody waits for is a watch that
// was not closed.
//
//	func TestMain(m *testing.M) { leaktest.Main(m) }
package leaktest

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is how long goroutines may take to end after the last test: closing is often noticed by another goroutine.
const patience = 5 * time.Second

// Main runs the tests of m and doesn't return. Where they pass and goroutines are left nevertheless, it prints their stacks and exits
// with status 1. While fuzzing it only runs m: the fuzzing engine has goroutines of its own.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 && !fuzzing() {
		http.DefaultClient.CloseIdleConnections()
		code = report(os.Stderr, patience)
	}
	os.Exit(code)
}

// report waits for goroutines to end, writes the stacks of those that don't to w, and returns the exit status.
func report(w io.Writer, limit time.Duration) int {
	left := wait(limit)
	if len(left) == 0 {
		return 0
	}
	fmt.Fprintf(w, "leaktest: %d goroutines are left:\n\n%s\n", len(left), strings.Join(left, "\n\n"))
	return 1
}

// fuzzing reports whether this process runs a fuzz target, as its coordinator or as a worker.
func fuzzing() bool {
	target, worker := flag.Lookup("test.fuzz"), flag.Lookup("test.fuzzworker")
	return target != nil && target.Value.String() != "" || worker != nil && worker.Value.String() == "true"
}

// wait returns the goroutines that are left when limit has passed, or nothing as soon as there are none.
func wait(limit time.Duration) []string {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(limit)
	for {
		left := others()
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		<-tick.C
	}
}

// others returns the stacks of all goroutines but the caller's, main's, and those that the testing and signal packages keep.
func others() []string {
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	var left []string
	// The caller's comes first.
	for _, stack := range strings.Split(string(buf), "\n\n")[1:] {
		if !expected(stack) {
			left = append(left, strings.TrimSpace(stack))
		}
	}
	return left
}

func expected(stack string) bool {
	for _, mark := range []string{"\nmain.main()\n", "\ncreated by testing.", "\ncreated by os/signal."} {
		if strings.Contains(stack, mark) {
			return true
		}
	}
	return false
}
