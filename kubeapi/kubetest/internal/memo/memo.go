// Package memo shares immutable values between the Envs of a process, which usually read the same
// files.
package memo

import "sync"

// maxResults is the number of results at which a Memo drops all of them, so that a process that
// invents its definitions, such as a fuzzer, does not keep them.
const maxResults = 1000

// A Memo remembers the results of a function. The zero value is empty. It is safe for concurrent
// use, also by several bubbles of testing/synctest.
type Memo[V any] struct {
	mu      sync.Mutex
	results map[string]func() (V, error) // guarded by mu
}

// Get returns the result for key. If there is none, it calls create, whose result must depend only
// on key. Concurrent calls with the same key wait for one call of create.
func (m *Memo[V]) Get(key string, create func() (V, error)) (V, error) {
	m.mu.Lock()
	result := m.results[key]
	if result == nil {
		if m.results == nil || len(m.results) >= maxResults {
			m.results = map[string]func() (V, error){}
		}
		result = sync.OnceValues(create)
		m.results[key] = result
	}
	m.mu.Unlock()
	return result()
}
