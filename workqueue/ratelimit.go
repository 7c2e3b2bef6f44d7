package workqueue

import (
	"cmp"
	"time"
)

// AddRateLimited counts a failure of key, adds the key after a delay, and returns that delay. The
// delay is the greatest of three: the delay for the failures of this key (MinDelay and MaxDelay),
// the delay that Rate requires, and atLeast, for example the Retry-After of a server. If the key
// already has a delay that ends no later, AddRateLimited returns the rest of that delay, and the
// call does not count towards Rate.
func (q *Queue[K]) AddRateLimited(key K, atLeast time.Duration) time.Duration {
	q.lock()
	defer q.mu.Unlock()
	if q.isShutDown {
		return 0
	}
	now := time.Now()
	last := q.limit.next(now, q.Rate, q.Burst)
	d := max(q.failureDelay(q.failures[key]), min(max(last.Sub(now), 0), q.longest()), atLeast)
	q.failures[key]++
	q.retried++
	if old := q.delayed[key]; old != nil && !old.due.After(now.Add(d)) {
		return max(old.due.Sub(now), 0)
	}
	// Beyond the greatest delay the rate is exceeded. Otherwise many failures of some keys would
	// delay all keys for hours.
	if most := now.Add(q.longest()); last.After(most) {
		last = most
	}
	q.limit.last = last
	q.addAfter(key, d)
	return d
}

// longest returns the greatest delay that the queue chooses by itself.
func (q *Queue[K]) longest() time.Duration {
	return max(cmp.Or(q.MaxDelay, 1000*time.Second), q.shortest())
}

// shortest returns the delay after the first failure of a key.
func (q *Queue[K]) shortest() time.Duration { return max(cmp.Or(q.MinDelay, 5*time.Millisecond), 0) }

// failureDelay returns the delay after the given number of earlier failures.
func (q *Queue[K]) failureDelay(failures int) time.Duration {
	d, longest := q.shortest(), q.longest()
	for ; failures > 0 && d > 0 && d < longest; failures-- {
		d += min(d, longest-d) // 2*d could overflow
	}
	return d
}

// Forget resets the failures of key. Call it when the work on key has succeeded, or when it will
// not be retried. It does not cancel a delay.
func (q *Queue[K]) Forget(key K) {
	q.lock()
	defer q.mu.Unlock()
	delete(q.failures, key)
}

// Failures returns the number of calls of AddRateLimited for key since the last Forget.
func (q *Queue[K]) Failures(key K) int {
	q.lock()
	defer q.mu.Unlock()
	return q.failures[key]
}

// A limiter is a token bucket. Instead of a number of tokens it stores the time at which the most
// recently taken token becomes available. If that time is long past, the bucket is full.
type limiter struct{ last time.Time }

// next returns the time at which the next token is available. The caller takes the token by storing
// this time in last.
func (l *limiter) next(now time.Time, rate float64, burst int) time.Time {
	rate, burst = cmp.Or(rate, 10), max(cmp.Or(burst, 100), 1)
	if rate < 0 {
		return l.last
	}
	interval := float64(time.Second) / rate
	last := l.last
	if full := now.Add(-time.Duration(float64(burst) * interval)); last.Before(full) {
		last = full
	}
	return last.Add(time.Duration(interval))
}
