package relay

import "sync"

// tasks are goroutines that somebody waits for in the end. Safe for concurrent use.
type tasks struct {
	mu    sync.Mutex
	ended bool // guarded by mu
	group sync.WaitGroup
}

// start runs f on a goroutine; false: it is too late for that.
func (t *tasks) start(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	t.group.Go(f)
	return true
}

// end returns when all have ended, and lets none begin any more.
func (t *tasks) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.group.Wait()
}
