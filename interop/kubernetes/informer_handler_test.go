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
func (h *eventChecker) handle(c notification) {
	if h.blocked != nil {
		<-h.blocked
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	before, existed := h.objects[c.key]
	if (c.old != nil || c.deleted != nil) != existed || c.old != nil && *c.old != before {
		h.report("%s: notification from %+v, but the object was %+v (existed: %t)", c.key, c.old, before, existed)
	}
	state := c.current
	if state == nil {
		state = c.deleted
	}
	if state.version < h.newest[c.key] {
		h.report("%s: version %d after version %d", c.key, state.version, h.newest[c.key])
	}
	h.newest[c.key] = state.version
	if h.objects[c.key] = *state; c.deleted != nil {
		delete(h.objects, c.key)
	}
}

func (h *eventChecker) report(format string, args ...any) {
	h.violations = append(h.violations, fmt.Sprintf(format, args...))
}

func (h *eventChecker) snapshot() map[string]objectState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.objects)
}

func (h *eventChecker) allViolations() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.violations
}

func (h *eventChecker) callCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}
