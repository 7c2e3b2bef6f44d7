package kubetest

import (
	"context"
	"time"
)

// startLimit is the time that Run waits for a manager to start, at most.
const startLimit = 10 * time.Second

// A Manager is a program that [Env.Run] can run, such as a manager of controller-runtime.
type Manager interface {
	// Start runs the manager until ctx ends.
	Start(ctx context.Context) error
}

// Run starts m, such as a manager of controller-runtime, and stops it at the end of the test. If m
// has a method Elected, as such managers have, Run returns when the manager has started: its caches
// have synced, and its controllers run. A manager that waits for the lease of another one makes Run
// wait for ten seconds. If Start returns an error, the test fails.
//
// Run also waits before it stops m, because a manager that is stopped while it starts may spin, so
// that the time of a bubble of testing/synctest stands still.
func (e *Env) Run(m Manager) {
	e.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	var err error
	go func() { // ends when the cleanup calls cancel
		defer close(ended)
		err = m.Start(ctx)
	}()
	e.t.Cleanup(func() {
		cancel()
		if <-ended; err != nil {
			e.t.Errorf("kubetest: the manager has failed: %v", err)
		}
	})
	leader, ok := m.(interface{ Elected() <-chan struct{} })
	if !ok {
		return
	}
	timer := time.NewTimer(startLimit)
	defer timer.Stop()
	select {
	case <-leader.Elected():
	case <-timer.C:
	case <-ended:
		if err != nil {
			e.t.FailNow() // the cleanup reports the error
		}
	}
}
