// Package benchmarks compares the cost of listwatch with the cost of bare TCP or bare bbolt
// in the same run: go test -bench . ./benchmarks
//
// Absolute figures depend on the machine, so compare ratios within one run.
// docs/performance.md explains how to read them.
package benchmarks

import (
	"slices"
	"testing"
	"time"
)

// samples holds durations. Benchmarks report their median and 99th percentile.
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

// trimmedMean returns the mean in nanoseconds of all samples except the greatest one percent. In
// these, the process had to wait for a processor.
func (s samples) trimmedMean() float64 {
	slices.Sort(s)
	kept := s[:max(1, len(s)*99/100)]
	var sum time.Duration
	for _, d := range kept {
		sum += d
	}
	return float64(sum.Nanoseconds()) / float64(len(kept))
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
