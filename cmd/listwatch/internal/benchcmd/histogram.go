package benchcmd

import (
	"math/bits"
	"time"
)

// maxLatency is the largest latency that can be recorded. Longer latencies are recorded as
// maxLatency.
const maxLatency = 10 * time.Minute

// halfBucket is the number of equal parts into which the histogram divides the range between two
// powers of two. It determines the precision: 0.1 percent.
const halfBucket = 1 << 10

// A histogram counts durations in microseconds. The zero histogram is empty.
type histogram struct {
	counts []int64 // by bucketOf
	total  int64
}

func (h *histogram) record(d time.Duration) {
	i := bucketOf(min(max(d, time.Microsecond), maxLatency).Microseconds())
	if h.counts == nil {
		h.counts = make([]int64, bucketOf(maxLatency.Microseconds())+1)
	}
	h.counts[i]++
	h.total++
}

func (h *histogram) reset() {
	clear(h.counts)
	h.total = 0
}

// bucketOf returns the index of the bucket of v. Each value below 2*halfBucket has its own bucket.
func bucketOf(v int64) int {
	shift := max(0, bits.Len64(uint64(v))-bits.Len(2*halfBucket-1))
	return shift*halfBucket + int(v>>shift)
}

// upperBound returns the largest value in bucket i.
func upperBound(i int) int64 {
	shift := max(0, i/halfBucket-1)
	return int64(i-shift*halfBucket+1)<<shift - 1
}

// quantiles returns the quantiles of the recorded durations.
func (h *histogram) quantiles() Quantiles {
	at := func(percent int64) float64 {
		rank, seen := (h.total*percent+99)/100, int64(0)
		for i, n := range h.counts {
			if seen += n; n > 0 && seen >= rank {
				return float64(upperBound(i)) / 1000
			}
		}
		return 0
	}
	return Quantiles{at(50), at(90), at(99), at(100)}
}
