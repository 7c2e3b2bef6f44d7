package listwatch

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// Backoff configures the delay between reconnect attempts. Each delay is random, so that clients
// that were disconnected together do not reconnect together. The upper bound of the delay is Min
// at first and doubles with each failure, up to Max. For the delay after a clean end of the
// stream, the bound is Min. If the server sent Retry-After, that time is added to the delay.
type Backoff struct {
	// Min is the first upper bound. If zero, 800 ms is used. A negative value means that the first
	// attempt to reconnect follows at once.
	Min time.Duration
	// Max is the greatest upper bound. If zero, 30 s is used. A negative value, or a value less
	// than Min, keeps the upper bound at Min.
	Max time.Duration
	// Healthy is the lifetime of a stream after which earlier failures no longer count. If zero,
	// 2 minutes is used. If negative, any stream that was opened resets the failures.
	Healthy time.Duration
}

// Delay returns the random delay after a failure that follows the given number of failures.
// Healthy has no effect on it.
func (b Backoff) Delay(failures int) time.Duration {
	bound := max(cmp.Or(b.Min, 800*time.Millisecond), 1)
	limit := max(cmp.Or(b.Max, 30*time.Second), bound)
	for range failures {
		if bound >= limit {
			break
		}
		bound *= 2
	}
	return 1 + rand.N(min(bound, limit))
}
