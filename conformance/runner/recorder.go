package runner

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// A recorder is a [T] outside of go test.
type recorder struct {
	ctx  context.Context
	name string
	done chan struct{}

	mu sync.Mutex
	// Guarded by mu.
	failed, skipped bool
	over            bool  // nobody listens any more
	interrupted     error // why it was not run to its end
	messages, log   []string
	cleanups        []func()
}

func newRecorder(ctx context.Context, name string) *recorder {
	return &recorder{ctx: ctx, name: name, done: make(chan struct{})}
}

// run calls f, and then what f asked to be called at its end. It must have a goroutine of its own, which Fatal ends.
func (r *recorder) run(f func()) {
	defer close(r.done)
	defer r.cleanUp()
	defer r.catch()
	f()
}

// catch makes a panic a failure.
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

// giveUp ends the listening to a case that has not ended: where it took too long it is a failure, and else the run was interrupted.
func (r *recorder) giveUp(cause error) {
	_, late := cause.(hung)
	if late {
		r.Error(cause)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over = true; !late {
		r.interrupted = cause
	}
}

func (r *recorder) say(fails bool, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text = strings.TrimRight(text, "\n")
	switch {
	case r.over:
	case fails:
		r.failed = true
		r.messages = append(r.messages, text)
	default:
		r.log = append(r.log, text)
	}
}

// Name is ID/VARIANT.
func (r *recorder) Name() string { return r.name }

// Context ends when the case has taken too long.
func (r *recorder) Context() context.Context { return r.ctx }

// Cleanup has f called at the end of the case, the last one first.
func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// Helper does nothing: a message needs no line of the source.
func (r *recorder) Helper() {}

// Failed reports whether an error was told.
func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// Log and Logf keep a line for the report of a failure.
func (r *recorder) Log(args ...any) { r.say(false, fmt.Sprintln(args...)) }

func (r *recorder) Logf(format string, args ...any) { r.say(false, fmt.Sprintf(format, args...)) }

// Error and Errorf say what is wrong, and the case goes on.
func (r *recorder) Error(args ...any) { r.say(true, fmt.Sprintln(args...)) }

func (r *recorder) Errorf(format string, args ...any) { r.say(true, fmt.Sprintf(format, args...)) }

// Fatal and Fatalf say what is wrong, and the case ends.
func (r *recorder) Fatal(args ...any) {
	r.say(true, fmt.Sprintln(args...))
	runtime.Goexit()
}

// Fatalf is Fatal with a format.
func (r *recorder) Fatalf(format string, args ...any) {
	r.say(true, fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// Skipf ends the case, which can't be run here.
func (r *recorder) Skipf(format string, args ...any) {
	r.mu.Lock()
	reason := fmt.Sprintf(format, args...)
	if r.skipped = true; r.failed {
		r.log = append(r.log, reason) // a message would be one of what is wrong
	} else {
		r.messages = append(r.messages, reason)
	}
	r.mu.Unlock()
	runtime.Goexit()
}
