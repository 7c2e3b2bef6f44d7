// Package leaktest fails a package's tests if goroutines are still running when the tests have
// finished. In this repository a leaked goroutine usually means a watch that was not closed.
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

// timeout is the time that goroutines have to end after the last test. Goroutines often end some
// time after the test has closed their connection. Some wait seconds for the peer first. Only a
// leak takes the whole timeout. wait measures it in checks, not by the clock.
const timeout = time.Minute

// interval is the time between two checks of the goroutines.
const interval = 10 * time.Millisecond

// Main runs the tests of m and exits the process. If the tests pass but goroutines are
// left, Main prints their stacks and exits with status 1. While fuzzing, it does not check
// for goroutines, because the fuzzing engine starts its own.
func Main(m *testing.M) {
	code := m.Run()
	if code == 0 && !fuzzing() {
		code = report(os.Stderr, timeout)
	}
	os.Exit(code)
}

// report waits for all goroutines to end, as wait does, writes the stacks of the
// remaining ones to w, and returns the exit status.
func report(w io.Writer, limit time.Duration) int {
	left := wait(limit)
	if len(left) == 0 {
		return 0
	}
	fmt.Fprintf(w, "leaktest: %d leaked goroutines:\n\n%s\n", len(left), strings.Join(left, "\n\n"))
	return 1
}

// fuzzing reports whether this process runs a fuzz target, as the coordinator or as a worker.
func fuzzing() bool {
	target, worker := flag.Lookup("test.fuzz"), flag.Lookup("test.fuzzworker")
	return target != nil && target.Value.String() != "" || worker != nil && worker.Value.String() == "true"
}

// wait waits until no goroutine is left and returns nil. If some are still left when the time limit
// has passed, it returns their stacks. It converts the limit to a number of checks, an interval
// apart. On a busy machine this process may not run for a while, and that time must not count,
// because its goroutines cannot end. Before each check, wait closes the idle connections of the
// default client, because a connection whose request was canceled during the dial becomes idle
// later.
func wait(limit time.Duration) []string {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for range limit / interval {
		http.DefaultClient.CloseIdleConnections()
		if len(others()) == 0 {
			return nil
		}
		<-tick.C
	}
	return others()
}

// others returns the stacks of all goroutines except the caller, main, and the goroutines of
// the testing and signal packages.
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
	// The first stack is the caller's.
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
