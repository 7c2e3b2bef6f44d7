// Package metrics measures watch servers, stores, relays and informers for Prometheus.
//
//	m := metrics.New()
//	server.Trace = m.Trace()
//	m.AddServer(server)
//	m.AddCollection(watchserver.DescribeResource(flags, ""), flags)
//	mux.Handle("GET /metrics", m.Handler())
//
// All names begin with "listwatch_" and use base units. The only labels are group, version,
// resource, transport, framing, code and reason: no series depends on a user, a namespace or a
// selector. The number of series is limited, too; see [MaxResources].
//
// The share of events that were already encoded, which is the hit rate of the frame cache, is
//
//	1 - rate(listwatch_frames_built_total) / rate(listwatch_watch_events_total)
//
// so it has no metric of its own.
package metrics

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/listwatch/listwatch/watchserver"
)

// Metrics measures any number of servers, collections, relays and informers of one process. It is a
// [prometheus.Collector], so a program that has a registry can register it there. [New] creates it.
// It is safe for concurrent use.
type Metrics struct {
	// Immutable after construction.
	counters []prometheus.Collector
	watches  watchCounters
	requests requestCounters
	commits  commitCounters
	relays   relayCounters
	informer informerCounters
	labels   labelSet

	mu sync.Mutex
	// Guarded by mu.
	servers     []*watchserver.Server
	listeners   []func() (open, limit int64)
	collections []collection
	relayed     []relayed
	informers   []informed
	stores      []func() StoreStats
}

// New returns a Metrics that measures nothing yet.
func New() *Metrics {
	m := new(Metrics)
	m.watches.create(m)
	m.requests.create(m)
	m.commits.create(m)
	m.relays.create(m)
	m.informer.create(m)
	return m
}

// Handler returns a handler that responds with these metrics, and with metrics of the Go runtime
// and the process, in the format that the client accepts.
func (m *Metrics) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.counters {
		c.Describe(out)
	}
	for _, g := range allGauges {
		out <- g.desc
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	for _, c := range m.counters {
		c.Collect(out)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var s scrape
	s.now = time.Now()
	m.collectWatches(&s)
	m.collectCollections(&s)
	m.collectRelays(&s)
	m.collectInformers(&s)
	m.collectStores(&s)
	s.send(out)
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "listwatch", Name: name, Help: help}, labels)
	m.counters = append(m.counters, c)
	return c
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "listwatch", Name: name, Help: help, Buckets: buckets})
	m.counters = append(m.counters, h)
	return h
}

// seconds are the buckets of all histograms of durations, from 0.1 ms to 100 s.
var seconds = []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10, 30, 100}
