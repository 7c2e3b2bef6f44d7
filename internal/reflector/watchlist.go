package reflector

import (
	"sync"
	"time"
)

const (
	// WatchListRetryInterval is the time after which a source that could not stream its state is
	// asked to stream it again.
	WatchListRetryInterval = time.Hour
	// maxTruncated is the number of consecutive watches that may end cleanly within the initial
	// events. Then the source is listed: it may not know how to mark their end.
	maxTruncated = 3
)

// A WatchListSupport remembers whether a Source can begin a watch with its state, which Kubernetes
// calls a watch list. The zero value assumes that it can. It is safe for concurrent use.
type WatchListSupport struct {
	mu          sync.Mutex
	unsupported time.Time // guarded by mu; the source is listed until then
}

// Unsupported reports whether the Source must be listed.
func (s *WatchListSupport) Unsupported() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.unsupported)
}

// MarkUnsupported makes Unsupported return true for [WatchListRetryInterval].
func (s *WatchListSupport) MarkUnsupported() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsupported = time.Now().Add(WatchListRetryInterval)
}
