package kubetest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
)

const (
	// endLimit is the time that a test may take from the end of its function to the end of its Env.
	endLimit = 30 * time.Second
	// endInterval is the time between two checks.
	endInterval = 20 * time.Millisecond
	// idleChecks is the number of checks without any Env after which the watchdog ends.
	idleChecks = 10
)

// watchEnd panics with an explanation if the Env still exists endLimit after the function of the
// test has returned. In a bubble of testing/synctest, a goroutine that spins stops the time, and
// neither the runtime nor a timeout of the program under test notices.
func (e *Env) watchEnd() {
	// Outside of a bubble, the time passes. The context of ginkgo's BeforeSuite ends long before
	// the Env.
	if inBubble() {
		context.AfterFunc(e.t.Context(), func() { ending.add(e) })
	}
}

// ending watches the Envs in bubbles whose tests have returned.
var ending watchdog

// A watchdog watches Envs from one goroutine outside of all bubbles. The goroutine outlives an Env
// for a moment, because the start of another one takes a garbage collection.
type watchdog struct {
	mu   sync.Mutex
	envs map[*Env]time.Time // the first check of each Env; guarded by mu; nil without a goroutine
}

func (w *watchdog) add(e *Env) {
	w.mu.Lock()
	runs := w.envs != nil
	if !runs {
		w.envs = map[*Env]time.Time{}
	}
	w.envs[e] = time.Time{} // the time in the bubble would be of no use
	w.mu.Unlock()
	if !runs {
		outsideBubbles(w.run)
	}
}

func (w *watchdog) run() {
	tick := time.NewTicker(endInterval)
	defer tick.Stop()
	for idle := 0; idle < idleChecks || !w.end(); {
		<-tick.C
		if idle++; w.check() {
			idle = 0
		}
	}
}

// check forgets the Envs that have stopped, and reports whether others are left.
func (w *watchdog) check() (left bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for e, since := range w.envs {
		switch {
		case e.stopped.Load():
			delete(w.envs, e)
		case since.IsZero():
			w.envs[e] = time.Now()
		case time.Since(since) > endLimit:
			panic(hangs(e.t.Name()))
		}
	}
	return len(w.envs) > 0
}

// end reports whether the goroutine can end, because no Env was added since the last check.
func (w *watchdog) end() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.envs) > 0 {
		return false
	}
	w.envs = nil
	return true
}

// outsideBubbles calls f in a goroutine that belongs to no bubble of testing/synctest, so that time
// is real for it. Package runtime calls its cleanups there.
func outsideBubbles(f func()) {
	runtime.AddCleanup(new(*int), func(f func()) { go f() }, f) // ends when f returns
	runtime.GC()
}

func hangs(test string) string {
	return fmt.Sprintf("kubetest: %s does not end: its cleanups have been running for %v. "+
		"If it uses a manager of controller-runtime, the manager may have been stopped before it had started: it then "+
		"spins, so the time of a testing/synctest bubble does not pass. Start it with Env.Run, which prevents this; "+
		"see docs/kubetest.md.", test, endLimit)
}
