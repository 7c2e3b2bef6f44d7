package benchcmd

import (
	"sync"
	"time"
)

// Quantiles summarize durations, in milliseconds. All are zero if nothing was measured.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// A Sample describes one interval of a run.
type Sample struct {
	// Second is the end of the interval, in seconds since the start of the writes.
	Second float64 `json:"second"`
	// EventsPerSecond and BytesPerSecond are the rates at which all watchers together have received
	// events and bytes.
	EventsPerSecond float64   `json:"eventsPerSecond"`
	BytesPerSecond  float64   `json:"bytesPerSecond"`
	Latency         Quantiles `json:"latencyMilliseconds"`
}

// A recorder collects the measurements of all watchers. It is safe for concurrent use.
type recorder struct {
	mu sync.Mutex
	// Guarded by mu.
	all, interval       histogram // latencies of the run, and of the interval
	firstEvent, synced  histogram
	write               histogram
	received            int64 // the number of events of bench's own writes
	intervalEvents      int64
	foreign, bookmarks  int64
	initial, reconnects int64
	syncedWatchers      int
	lastError           error // the last error of a connection
	timeline            []Sample
	previous            time.Time // the end of the last interval
	previousBytes       int64
}

// update calls do with the lock held.
func (r *recorder) update(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}

// start begins the first interval, which excludes the events and bytes received before.
func (r *recorder) start(now time.Time, bytes int64) {
	r.update(func() {
		r.previous, r.previousBytes, r.intervalEvents = now, bytes, 0
		r.interval.reset()
	})
}

// sample ends the current interval and returns its measurements. begin is the time at which the
// writes started.
func (r *recorder) sample(now, begin time.Time, bytes int64) Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	seconds := now.Sub(r.previous).Seconds()
	s := Sample{
		Second:          now.Sub(begin).Seconds(),
		EventsPerSecond: float64(r.intervalEvents) / seconds,
		BytesPerSecond:  float64(bytes-r.previousBytes) / seconds,
		Latency:         r.interval.quantiles(),
	}
	r.timeline = append(r.timeline, s)
	r.previous, r.previousBytes, r.intervalEvents = now, bytes, 0
	r.interval.reset()
	return s
}
