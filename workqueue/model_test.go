package workqueue

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// A model is a Queue in its simplest form.
type model struct {
	// The keys to hand out, in order. Keys whose delays end at the same time are in one group.
	order      [][]string
	pending    map[string]bool
	inProgress map[string]bool
	delayed    map[string]time.Time
	failures   map[string]int
	isShutDown bool
}

// add adds keys as one group: the Queue may hand them out in any order.
func (m *model) add(keys ...string) {
	var group []string
	for _, k := range keys {
		if m.isShutDown || m.pending[k] {
			continue
		}
		m.pending[k] = true
		if !m.inProgress[k] {
			group = append(group, k)
		}
	}
	if len(group) > 0 {
		m.order = append(m.order, group)
	}
}

func (m *model) addAfter(k string, d time.Duration) {
	if d <= 0 {
		m.add(k)
		return
	}
	due := time.Now().Add(d)
	if old, ok := m.delayed[k]; !m.isShutDown && (!ok || due.Before(old)) {
		m.delayed[k] = due
	}
}

// advance adds the keys whose delay has ended.
func (m *model) advance() {
	var due []string
	for k, t := range m.delayed {
		if !t.After(time.Now()) {
			due = append(due, k)
		}
	}
	slices.SortFunc(due, func(a, b string) int { return m.delayed[a].Compare(m.delayed[b]) })
	for len(due) > 0 {
		n := 1
		for n < len(due) && m.delayed[due[n]].Equal(m.delayed[due[0]]) {
			n++
		}
		m.add(due[:n]...)
		due = due[n:]
	}
	for k, t := range m.delayed {
		if !t.After(time.Now()) {
			delete(m.delayed, k)
		}
	}
}

// take checks that the model may hand out k next.
func (m *model) take(t *rapid.T, k string) {
	i := slices.Index(m.order[0], k)
	if i < 0 {
		t.Fatalf("Get returned %s, want one of %v", k, m.order[0])
	}
	m.order[0] = slices.Delete(m.order[0], i, i+1)
	if len(m.order[0]) == 0 {
		m.order = m.order[1:]
	}
	delete(m.pending, k)
	m.inProgress[k] = true
}

func (m *model) len() (n int) {
	for _, group := range m.order {
		n += len(group)
	}
	return n
}

func TestQueueEqualsModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Hide the Deadline method of *testing.T. rapid would call it, but it must not be called in
		// a synctest bubble.
		rapid.Check(struct{ rapid.TB }{t}, func(t *rapid.T) {
			q := &Queue[string]{MinDelay: time.Second, MaxDelay: 5 * time.Second, Rate: -1}
			m := &model{
				pending: map[string]bool{}, inProgress: map[string]bool{}, delayed: map[string]time.Time{},
				failures: map[string]int{},
			}
			t.Repeat(actions(q, m))
			q.ShutDown() // stops the timers
		})
	})
}

// actions returns the operations that are applied to q and m.
func actions(q *Queue[string], m *model) map[string]func(*rapid.T) {
	anyKey := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	anyDelay := rapid.IntRange(-1, 4)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	return map[string]func(*rapid.T){
		"add": func(t *rapid.T) {
			k := anyKey.Draw(t, "key")
			q.Add(k)
			m.add(k)
		},
		"add after": func(t *rapid.T) {
			k, d := anyKey.Draw(t, "key"), time.Duration(anyDelay.Draw(t, "seconds"))*time.Second
			q.AddAfter(k, d)
			m.addAfter(k, d)
		},
		"add rate limited": func(t *rapid.T) {
			k, d := anyKey.Draw(t, "key"), time.Duration(anyDelay.Draw(t, "seconds"))*time.Second
			want := max([]time.Duration{
				time.Second, 2 * time.Second, 4 * time.Second,
				5 * time.Second,
			}[min(m.failures[k], 3)], d)
			if m.isShutDown {
				want = 0
			} else {
				m.failures[k]++
			}
			if old, ok := m.delayed[k]; ok && !m.isShutDown {
				want = min(want, time.Until(old))
			}
			m.addAfter(k, want)
			if got := q.AddRateLimited(k, d); got != want {
				t.Fatalf("AddRateLimited(%s) returned %v, want %v", k, got, want)
			}
		},
		"forget": func(t *rapid.T) {
			k := anyKey.Draw(t, "key")
			q.Forget(k)
			delete(m.failures, k)
		},
		"get": func(t *rapid.T) {
			if _, err := q.Get(ended); err != context.Canceled {
				t.Fatalf("Get with an ended context returned the error %v", err)
			}
			if len(m.order) == 0 {
				t.Skip("Get would wait")
			}
			k, err := q.Get(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			m.take(t, k)
		},
		"done": func(t *rapid.T) {
			k := anyKey.Draw(t, "key")
			q.Done(k)
			if m.inProgress[k] {
				delete(m.inProgress, k)
				if m.pending[k] {
					m.order = append(m.order, []string{k})
				}
			}
		},
		"advance": func(t *rapid.T) {
			<-time.After(time.Duration(rapid.IntRange(1, 6).Draw(t, "seconds")) * time.Second)
			m.advance()
		},
		"shut down": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "chance") == 0 {
				q.ShutDown()
				m.isShutDown = true
				clear(m.delayed)
			}
		},
		"": func(t *rapid.T) {
			synctest.Wait()
			if got, want := q.Len(), m.len(); got != want {
				t.Fatalf("the queue holds %d keys, want %v", got, m.order)
			}
			for k, n := range m.failures {
				if got := q.Failures(k); got != n {
					t.Fatalf("%s has %d failures, want %d", k, got, n)
				}
			}
		},
	}
}
