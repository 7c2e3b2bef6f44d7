package benchcmd

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxLatency is the largest latency that can be recorded. Longer latencies are recorded as
// maxLatency.
const maxLatency = 10 * time.Minute

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, maxLatency.Microseconds(), 3)
}

func record(h *hdrhistogram.Histogram, d time.Duration) {
	// RecordValue fails only if the value is outside the bounds of h.
	_ = h.RecordValue(min(max(d, time.Microsecond), maxLatency).Microseconds())
}

// Quantiles summarize durations, in milliseconds. All are zero if nothing was measured.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func quantiles(h *hdrhistogram.Histogram) Quantiles {
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
	if h.TotalCount() == 0 {
		return Quantiles{}
	}
	return Quantiles{at(50), at(90), at(99), at(100)}
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
	all, interval       *hdrhistogram.Histogram // latencies of the run, and of the interval
	firstEvent, synced  *hdrhistogram.Histogram
	write               *hdrhistogram.Histogram
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

func newRecorder() *recorder {
	return &recorder{
		all: newHistogram(), interval: newHistogram(), firstEvent: newHistogram(), synced: newHistogram(), write: newHistogram(),
	}
}

// update calls the function do with the lock held.
func (r *recorder) update(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}

// start begins the first interval, which excludes the events and bytes received before.
func (r *recorder) start(now time.Time, bytes int64) {
	r.update(func() {
		r.previous, r.previousBytes, r.intervalEvents = now, bytes, 0
		r.interval.Reset()
	})
}

// sample ends the current interval and returns its measurements. The parameter begin is the start
// of the writes.
func (r *recorder) sample(now, begin time.Time, bytes int64) Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	seconds := now.Sub(r.previous).Seconds()
	s := Sample{
		Second:          now.Sub(begin).Seconds(),
		EventsPerSecond: float64(r.intervalEvents) / seconds,
		BytesPerSecond:  float64(bytes-r.previousBytes) / seconds,
		Latency:         quantiles(r.interval),
	}
	r.timeline = append(r.timeline, s)
	r.previous, r.previousBytes, r.intervalEvents = now, bytes, 0
	r.interval.Reset()
	return s
}
