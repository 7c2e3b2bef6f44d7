package reflector

import (
	"sync"
	"time"
)

const (
	// WatchListRetryInterval is the time for which the reflector lists a source that could not
	// stream its state. After that, the reflector tries streaming again.
	WatchListRetryInterval = time.Hour
	// After maxTruncated consecutive watches that ended cleanly within the initial events, the
	// reflector lists the source, because the source may be unable to mark the end of its initial
	// events.
	maxTruncated = 3
)

// A WatchListSupport remembers whether a Source supports watches that begin with the state, which
// Kubernetes calls watch lists. The zero value assumes that the Source supports them. It is safe
// for concurrent use.
type WatchListSupport struct {
	mu sync.Mutex
	// unsupported is the time until which the Source is assumed not to support watch lists. It is
	// guarded by mu.
	unsupported time.Time
}

// Unsupported reports whether the Source must be listed.
func (w *WatchListSupport) Unsupported() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Before(w.unsupported)
}

// MarkUnsupported makes Unsupported return true for [WatchListRetryInterval].
func (w *WatchListSupport) MarkUnsupported() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unsupported = time.Now().Add(WatchListRetryInterval)
}
