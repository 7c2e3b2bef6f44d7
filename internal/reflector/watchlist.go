package reflector

import (
	"sync"
	"time"
)

// WatchListRetryInterval is the time for which the reflector lists a source that could not stream
// its state. After that, the reflector tries streaming again.
const WatchListRetryInterval = time.Hour

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

// MarkSupported makes Unsupported return false.
func (w *WatchListSupport) MarkSupported() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unsupported = time.Time{}
}
