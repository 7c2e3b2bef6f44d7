package listwatch

import "time"

// Backoff is how long who follows a collection waits before it opens another stream: at random up to Min, and up to twice as long after
// each failure, up to Max. So clients that were cut off together don't come back together. What the server asks for, by Retry-After, is
// waited for first. After a clean end Min is the bound, whatever failed before.
type Backoff struct {
	// Min is zero for 800 ms, Max zero for 30 s. Negative: the least there is.
	Min, Max time.Duration
	// Healthy is how long a stream must have lived to make what failed before it forgotten. Zero: 2 minutes; negative: any
	// stream does.
	Healthy time.Duration
}
