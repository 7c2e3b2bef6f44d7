package workqueue

import (
	"cmp"
	"time"
)

// AddRateLimited counts a failure of key, adds the key after a delay, and returns that delay. It is
// the greatest of three: the delay for the failures of this key (MinDelay and MaxDelay), the delay
// that Rate requires, and atLeast, for example the Retry-After of a server.
func (q *Queue[K]) AddRateLimited(key K, atLeast time.Duration) time.Duration {
	q.lock()
	defer q.mu.Unlock()
	if q.isShutDown {
		return 0
	}
	d := max(q.failureDelay(q.failures[key]), q.limit.reserve(time.Now(), q.Rate, q.Burst), atLeast)
	q.failures[key]++
	q.retried++
	q.addAfter(key, d)
	return d
}

// failureDelay returns the delay after the given number of earlier failures.
func (q *Queue[K]) failureDelay(failures int) time.Duration {
	d := max(cmp.Or(q.MinDelay, 5*time.Millisecond), 0)
	longest := max(cmp.Or(q.MaxDelay, 1000*time.Second), d)
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

// reserve takes a token and returns the time until that token is available.
func (l *limiter) reserve(now time.Time, rate float64, burst int) time.Duration {
	rate, burst = cmp.Or(rate, 10), max(cmp.Or(burst, 100), 1)
	if rate < 0 {
		return 0
	}
	interval := float64(time.Second) / rate
	if full := now.Add(-time.Duration(float64(burst) * interval)); l.last.Before(full) {
		l.last = full
	}
	l.last = l.last.Add(time.Duration(interval))
	return max(l.last.Sub(now), 0)
}
