package kubetest

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// endLimit is the time that a test may take from the end of its function to the end of its Env, and
// endInterval the time between two checks.
const (
	endLimit    = 30 * time.Second
	endInterval = 20 * time.Millisecond
)

// watchEnd panics with an explanation if the Env still exists endLimit after the function of the
// test has returned. In a bubble of testing/synctest, a goroutine that spins stops the time, and
// neither the runtime nor a timeout of the program under test notices.
func (e *Env) watchEnd() {
	// Outside of a bubble, the time passes. The context of ginkgo's BeforeSuite ends long before
	// the Env.
	if !inBubble() {
		return
	}
	ctx := e.t.Context()
	context.AfterFunc(ctx, func() {
		outsideBubbles(func() {
			since, tick := time.Now(), time.NewTicker(endInterval)
			defer tick.Stop()
			for !e.stopped.Load() {
				<-tick.C
				if time.Since(since) > endLimit {
					panic(hangs(e.t.Name()))
				}
			}
		})
	})
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
