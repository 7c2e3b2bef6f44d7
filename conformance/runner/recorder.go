package runner

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// A recorder is a [harness.T] for runs outside of go test.
type recorder struct {
	ctx  context.Context // the context of the run; Context returns it
	name string
	done chan struct{}

	mu sync.Mutex
	// Guarded by mu.
	failed, skipped bool
	// abandoned is true if the runner no longer waits for the case. Then interrupted is the reason,
	// or nil if the case timed out.
	abandoned     bool
	interrupted   error
	messages, log []string
	cleanups      []func()
}

func newRecorder(ctx context.Context, name string) *recorder {
	return &recorder{ctx: ctx, name: name, done: make(chan struct{})}
}

// run calls f and then the cleanup functions that f registered. It must run in a goroutine
// of its own, because Fatal and Skipf end the goroutine.
func (r *recorder) run(f func()) {
	defer close(r.done)
	defer r.cleanUp()
	defer r.catch()
	f()
}

// catch reports a panic as a failure.
func (r *recorder) catch() {
	if p := recover(); p != nil {
		r.Errorf("the case panicked: %v\n%s", p, debug.Stack())
	}
}

func (r *recorder) cleanUp() {
	for {
		r.mu.Lock()
		n := len(r.cleanups)
		if n == 0 {
			r.mu.Unlock()
			return
		}
		last := r.cleanups[n-1]
		r.cleanups = r.cleanups[:n-1]
		r.mu.Unlock()
		func() {
			defer r.catch()
			last()
		}()
	}
}

// abandon makes r ignore everything that the case reports from now on. The case fails if
// cause is a timeout; otherwise it counts as interrupted.
func (r *recorder) abandon(cause error) {
	_, late := cause.(timedOut)
	if late {
		r.Error(cause)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.abandoned = true; !late {
		r.interrupted = cause
	}
}

func (r *recorder) record(fails bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text = strings.TrimRight(text, "\n")
	switch {
	case r.abandoned:
	case fails:
		r.failed = true
		r.messages = append(r.messages, text)
	default:
		r.log = append(r.log, text)
	}
}

// Name returns the name of the run.
func (r *recorder) Name() string { return r.name }

// Context returns a context that ends when the case ends or times out.
func (r *recorder) Context() context.Context { return r.ctx }

// Cleanup registers f to be called at the end of the case. The function registered last is called
// first.
func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// Helper does nothing, because messages contain no source lines.
func (r *recorder) Helper() {}

// Failed reports whether the case has failed.
func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// Log records a line that the report shows if the case fails.
func (r *recorder) Log(args ...any) { r.record(false, fmt.Sprintln(args...)) }

// Logf formats a line and records it like Log.
func (r *recorder) Logf(format string, args ...any) { r.record(false, fmt.Sprintf(format, args...)) }

// Error reports a failure. The case continues.
func (r *recorder) Error(args ...any) { r.record(true, fmt.Sprintln(args...)) }

// Errorf formats a failure and reports it like Error.
func (r *recorder) Errorf(format string, args ...any) { r.record(true, fmt.Sprintf(format, args...)) }

// Fatal reports a failure and ends the case.
func (r *recorder) Fatal(args ...any) {
	r.record(true, fmt.Sprintln(args...))
	runtime.Goexit()
}

// Fatalf formats a failure and reports it like Fatal.
func (r *recorder) Fatalf(format string, args ...any) {
	r.record(true, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// Skipf ends the case as skipped, unless it has failed.
func (r *recorder) Skipf(format string, args ...any) {
	r.mu.Lock()
	reason := fmt.Sprintf(format, args...)
	if r.skipped = true; r.failed {
		r.log = append(r.log, reason) // the messages of a failed case are its failures
	} else {
		r.messages = append(r.messages, reason)
	}
	r.mu.Unlock()
	runtime.Goexit()
}
