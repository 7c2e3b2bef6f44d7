package benchcmd

import (
	"math"
	"testing"
	"time"
)

func TestQuantilesArePrecise(t *testing.T) {
	var h histogram
	if got := h.quantiles(); got != (Quantiles{}) {
		t.Errorf("an empty histogram: got %+v", got)
	}
	for i := range 100_000 {
		h.record(time.Duration(i+1) * 37 * time.Microsecond)
	}
	got := h.quantiles()
	for percent, ms := range map[float64]float64{50: got.P50, 90: got.P90, 99: got.P99, 100: got.Max} {
		if want := 37 * percent; math.Abs(ms-want) > want/1000 {
			t.Errorf("%g %%: got %g ms, want %g", percent, ms, want)
		}
	}
	h.reset()
	h.record(time.Hour)
	h.record(-1)
	got = h.quantiles()
	if want := float64(maxLatency.Milliseconds()); got.P50 != 0.001 || math.Abs(got.Max-want) > want/1000 {
		t.Errorf("got %+v, want the smallest and the largest latency", got)
	}
}

func TestBucketsAreContiguous(t *testing.T) {
	last := bucketOf(maxLatency.Microseconds())
	for i := range last {
		if v := upperBound(i); bucketOf(v) != i || bucketOf(v+1) != i+1 {
			t.Fatalf("bucket %d ends at %d, which is in bucket %d; the next value is in %d", i, v, bucketOf(v),
				bucketOf(v+1))
		}
	}
}
