package metrics

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A scrape collects the values of all gauges for one request of Prometheus.
type scrape struct {
	now    time.Time
	values map[sample]float64
}

// A sample is a gauge with the values of its labels.
type sample struct {
	gauge  *gauge
	labels string // joined with NUL, so that a sample can be the key of a map
}

// set adds v to the sample, or replaces a smaller value if the gauge is a maximum.
func (s *scrape) set(g *gauge, v float64, labels ...string) {
	if s.values == nil {
		s.values = make(map[sample]float64)
	}
	key := sample{g, strings.Join(labels, "\x00")}
	old, ok := s.values[key]
	switch {
	case g.max && ok:
		s.values[key] = max(old, v)
	default:
		s.values[key] = old + v
	}
}

// send sends all samples. If the gauge of open watches has more than maxWatchSeries samples, send
// sends only the greatest samples of the gauge, and one more sample with the sum of the rest.
func (s *scrape) send(out chan<- prometheus.Metric) {
	s.limit(openWatches, maxWatchSeries)
	for key, v := range s.values {
		var labels []string
		if key.gauge.hasLabels {
			labels = strings.Split(key.labels, "\x00")
		}
		out <- prometheus.MustNewConstMetric(key.gauge.desc, key.gauge.kind, v, labels...)
	}
}

// limit adds up the smallest samples of g, so that at most n remain.
func (s *scrape) limit(g *gauge, n int) {
	var all []sample
	for key := range s.values {
		if key.gauge == g {
			all = append(all, key)
		}
	}
	if len(all) <= n {
		return
	}
	slices.SortFunc(all, func(a, b sample) int {
		if s.values[a] != s.values[b] {
			return int(s.values[b] - s.values[a])
		}
		return strings.Compare(a.labels, b.labels)
	})
	rest := 0.0
	for _, key := range all[n-1:] {
		rest += s.values[key]
		delete(s.values, key)
	}
	s.set(g, rest, "", "", other.Name, "", "")
}
