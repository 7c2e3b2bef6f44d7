package clients

import (
	"bytes"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch/benchmarks/rivals/internal/event"
)

// A counter counts the events of all watchers together, and records their latencies.
type counter struct {
	mu sync.Mutex
	// Guarded by mu.
	total     int
	latencies []time.Duration
	changed   chan struct{} // closed by the next event

	bytes atomic.Int64 // the bytes of all events, without HTTP's headers and TLS
}

func newCounter() *counter { return &counter{changed: make(chan struct{})} }

func (c *counter) add(latencies []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total += len(latencies)
	c.latencies = append(c.latencies, latencies...)
	close(c.changed)
	c.changed = make(chan struct{})
}

// patience is the time without any event after which await gives up.
const patience = 15 * time.Second

// A countingReader adds the bytes that it reads to bytes.
type countingReader struct {
	io.Reader
	bytes *atomic.Int64
}

// Read implements io.Reader.
func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.bytes.Add(int64(n))
	return n, err
}

// await waits until the counter has reached total, and returns the latencies since the last call.
// If no event arrives within patience, it reports false.
func (c *counter) await(total int) ([]time.Duration, bool) {
	for timer := time.NewTimer(patience); ; timer.Reset(patience) {
		c.mu.Lock()
		reached, changed, latencies := c.total >= total, c.changed, c.latencies
		if reached {
			c.latencies = nil
		}
		c.mu.Unlock()
		if reached {
			return latencies, true
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil, false
		}
	}
}

// read reads r to its end and passes the latencies of the events in each block to add. It only
// looks for time stamps, so that clients cost as little as possible.
func read(r io.Reader, add func([]time.Duration)) {
	buf := make([]byte, 32<<10)
	kept := 0 // the length of an incomplete time stamp at the start of buf
	for {
		n, err := r.Read(buf[kept:])
		latencies, rest := scan(buf[:kept+n], time.Now())
		if len(latencies) > 0 {
			add(latencies)
		}
		if err != nil {
			return
		}
		kept = copy(buf, rest)
	}
}

// scan returns the ages of the time stamps in data, and the incomplete time stamp at the end of
// data. now is the current time.
func scan(data []byte, now time.Time) (ages []time.Duration, rest []byte) {
	for {
		i := bytes.IndexByte(data, event.Mark)
		switch {
		case i < 0:
			return ages, nil
		case len(data) < i+1+event.StampLen:
			return ages, data[i:]
		}
		// Skip a mark that no digits follow: it is part of the binary header of a frame.
		at, err := strconv.ParseInt(string(data[i+1:i+1+event.StampLen]), 10, 64)
		data = data[i+1:]
		if err == nil {
			ages = append(ages, now.Sub(time.Unix(0, at)))
			data = data[event.StampLen:]
		}
	}
}
