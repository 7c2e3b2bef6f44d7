package relay

import "sync"

// tasks runs goroutines until wait is called. It is safe for concurrent use.
type tasks struct {
	mu      sync.Mutex
	closing bool // guarded by mu
	group   sync.WaitGroup
}

// start runs f on a goroutine. After wait has been called it returns false and does nothing.
func (t *tasks) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return false
	}
	t.group.Go(f)
	return true
}

// wait returns when all goroutines have ended.
func (t *tasks) wait() {
	t.mu.Lock()
	t.closing = true
	t.mu.Unlock()
	t.group.Wait()
}
