package relay

import (
	"context"
	"sync"
)

// tasks runs the goroutines of a Relay until stop is called. It is safe for concurrent use.
type tasks struct {
	// Immutable after construction. ctx is passed to all goroutines. It is a field because the
	// goroutines outlive the call that starts them. stop cancels it.
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	closing bool // guarded by mu
	group   sync.WaitGroup
}

// start runs f on a goroutine. After stop has been called it returns false and does nothing.
func (t *tasks) start(f func(ctx context.Context)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return false
	}
	t.group.Go(func() { f(t.ctx) })
	return true
}

// stop cancels the context of all goroutines, and returns when they have ended.
func (t *tasks) stop() {
	t.cancel()
	t.mu.Lock()
	t.closing = true
	t.mu.Unlock()
	t.group.Wait()
}
