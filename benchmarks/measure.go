// Package benchmarks measures what listwatch promises, beside the physical limit in the same run: go test -bench . ./benchmarks
//
// The machine that runs them is never the one that reads the figures, so ratios within one run are what counts; docs/performance.md
// says how to read them.
package benchmarks

import (
	"slices"
	"testing"
	"time"
)

// samples are single durations, of which the median and the 99th percentile are reported.
type samples []time.Duration

func (s samples) quantile(q float64) time.Duration {
	slices.Sort(s)
	return s[min(int(float64(len(s))*q), len(s)-1)]
}

func (s samples) report(b *testing.B, what string) {
	if len(s) == 0 {
		return
	}
	b.ReportMetric(float64(s.quantile(0.5).Nanoseconds()), "p50-ns/"+what)
	b.ReportMetric(float64(s.quantile(0.99).Nanoseconds()), "p99-ns/"+what)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
