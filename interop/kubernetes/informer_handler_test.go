package kubernetes

import (
	"fmt"
	"maps"
	"sync"
)

// An eventChecker is a handler that keeps a copy of the objects and records inconsistent
// notifications.
type eventChecker struct {
	blocked chan struct{} // if not nil, the handler blocks until this channel is closed

	mu sync.Mutex
	// Guarded by mu.
	objects    map[string]objectState
	newest     map[string]uint64 // the newest version of each key, deleted or not
	violations []string
	calls      int
}

func newEventChecker() *eventChecker {
	return &eventChecker{objects: map[string]objectState{}, newest: map[string]uint64{}}
}

// handle is called for each notification, and records violations of three rules. The notifications
// of an object must be an add, any number of updates, and a deletion. Each notification must start
// from the last known state. Versions must never decrease.
func (e *eventChecker) handle(c notification) {
	if e.blocked != nil {
		<-e.blocked
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls++
	before, existed := e.objects[c.key]
	if (c.old != nil || c.deleted != nil) != existed || c.old != nil && *c.old != before {
		e.report("%s: notification from %+v, but the object was %+v (existed: %t)", c.key, c.old, before, existed)
	}
	state := c.current
	if state == nil {
		state = c.deleted
	}
	if state.version < e.newest[c.key] {
		e.report("%s: version %d after version %d", c.key, state.version, e.newest[c.key])
	}
	e.newest[c.key] = state.version
	if e.objects[c.key] = *state; c.deleted != nil {
		delete(e.objects, c.key)
	}
}

func (e *eventChecker) report(format string, args ...any) {
	e.violations = append(e.violations, fmt.Sprintf(format, args...))
}

func (e *eventChecker) snapshot() map[string]objectState {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.objects)
}

func (e *eventChecker) allViolations() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.violations
}

func (e *eventChecker) callCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.calls
}
