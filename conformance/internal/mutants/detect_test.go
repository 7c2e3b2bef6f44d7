package mutants

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/conformance/runner"
)

// detects reports whether c fails on the target in any variant.
func detects(t *testing.T, c harness.Case, target harness.Target) (failed bool) {
	if c.RunsIn(harness.FakeTime) {
		for _, v := range c.VariantsOn(target) {
			synctest.Test(t, func(t *testing.T) { failed = failsInBubble(t.Context(), c, target, v) })
			if failed {
				return true
			}
		}
	}
	runner.Execute(t.Context(), c, target, func(string) bool { return !failed }, func(o runner.Outcome) {
		failed = failed || o.Verdict == runner.Fail || o.Verdict == runner.Warn
	})
	return failed
}

func failsInBubble(ctx context.Context, c harness.Case, target harness.Target, v harness.Variant) bool {
	r := &bubbleT{ctx: ctx, name: c.ID}
	done := make(chan struct{})
	started := false
	go func() {
		defer close(done)
		defer r.cleanUp()
		s := c.Setup
		s.FakeTime = true
		e := harness.NewEnv(r, target, v, s, harness.NewTimeline())
		started = true
		c.Run(e)
	}()
	<-done
	return started && r.failed.Load()
}

// A bubbleT is the [harness.T] of a case that runs in a synctest bubble and is expected to fail. It
// records a failure without failing the test, and discards all messages.
type bubbleT struct {
	ctx      context.Context // the context of the bubble, returned by Context
	name     string
	failed   atomic.Bool
	mu       sync.Mutex
	cleanups []func() // guarded by mu
}

func (b *bubbleT) Name() string             { return b.name }
func (b *bubbleT) Context() context.Context { return b.ctx }
func (b *bubbleT) Helper()                  {}
func (b *bubbleT) Failed() bool             { return b.failed.Load() }
func (b *bubbleT) Log(...any)               {}
func (b *bubbleT) Logf(string, ...any)      {}
func (b *bubbleT) Error(...any)             { b.failed.Store(true) }
func (b *bubbleT) Errorf(string, ...any)    { b.failed.Store(true) }
func (b *bubbleT) Skipf(string, ...any)     { runtime.Goexit() }

func (b *bubbleT) Fatal(...any) {
	b.failed.Store(true)
	runtime.Goexit()
}

func (b *bubbleT) Fatalf(string, ...any) { b.Fatal() }

func (b *bubbleT) Cleanup(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cleanups = append(b.cleanups, f)
}

// cleanUp records a panic as a failure, and calls the cleanup functions in reverse order.
func (b *bubbleT) cleanUp() {
	if p := recover(); p != nil {
		b.failed.Store(true)
	}
	for {
		b.mu.Lock()
		n := len(b.cleanups)
		if n == 0 {
			b.mu.Unlock()
			return
		}
		last := b.cleanups[n-1]
		b.cleanups = b.cleanups[:n-1]
		b.mu.Unlock()
		last()
	}
}
