package loop

import (
	"net/http"
	"slices"
	"sync"
)

// A stateReporter reports the states of a connection to http.Server.ConnState. It calls that
// function on a goroutine of its own, because the function may block. If the state changes faster
// than the function returns, some changes are not reported.
type stateReporter struct {
	report func(http.ConnState) // immutable; nil if the states are not reported

	mu sync.Mutex
	// Guarded by mu.
	states  []http.ConnState // the states to report
	running bool             // run runs
	group   sync.WaitGroup
}

// add reports the state later.
func (r *stateReporter) add(state http.ConnState) {
	if r.report == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.states) < 2 {
		r.states = append(r.states, state)
	} else {
		r.states = r.states[:1] // active, idle, active: the first of them is enough
	}
	if !r.running {
		r.running = true
		r.group.Go(r.run)
	}
}

func (r *stateReporter) run() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.states) > 0 {
		state := r.states[0]
		r.states = slices.Delete(r.states, 0, 1)
		r.mu.Unlock()
		r.report(state)
		r.mu.Lock()
	}
	r.running = false
}

// wait waits until all states have been reported.
func (r *stateReporter) wait() { r.group.Wait() }
