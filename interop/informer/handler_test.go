package informer

import (
	"fmt"
	"maps"
	"sync"
)

// A handler keeps a copy of what it is told, and complains of what it must not be told.
type handler struct {
	gate chan struct{} // it hangs until this is closed; nil: it doesn't

	mu sync.Mutex
	// Guarded by mu.
	copy   map[string]seen
	newest map[string]uint64 // the newest version of each key that was ever there
	wrong  []string
	calls  int
}

func newHandler() *handler { return &handler{copy: map[string]seen{}, newest: map[string]uint64{}} }

// take is called for each change. For one object there is first an add, then updates, then a deletion, each from what was told last, and
// versions never go back.
func (h *handler) take(c change) {
	if h.gate != nil {
		<-h.gate
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	before, there := h.copy[c.key]
	if (c.old != nil || c.gone != nil) != there || c.old != nil && *c.old != before {
		h.complain("%s: is said to have been %+v, and was %+v (%t)", c.key, c.old, before, there)
	}
	now := c.now
	if now == nil {
		now = c.gone
	}
	if now.version < h.newest[c.key] {
		h.complain("%s: goes back from version %d to %d", c.key, h.newest[c.key], now.version)
	}
	h.newest[c.key] = now.version
	if h.copy[c.key] = *now; c.gone != nil {
		delete(h.copy, c.key)
	}
}

func (h *handler) complain(format string, args ...any) {
	h.wrong = append(h.wrong, fmt.Sprintf(format, args...))
}

func (h *handler) has() map[string]seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.copy)
}

func (h *handler) complaints() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.wrong
}

func (h *handler) told() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}
