// Package metrics measures watch servers, stores, relays, informers and controllers for Prometheus.
//
//	m := metrics.New()
//	server.Trace = m.Trace()
//	m.AddServer(server)
//	m.AddCollection(watchserver.Resource{Version: "v1", Name: "flags"}, flags)
//	mux.Handle("GET /metrics", m.Handler())
//
// All names begin with "listwatch_" and use base units. The only labels are group, version,
// resource, transport, framing, code, reason, controller and result: no series depends on a user, a
// namespace or a selector. The number of series is limited, too; see [MaxResources].
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

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/watchserver"
	"github.com/listwatch/listwatch/workqueue"
)

// Metrics measures any number of servers, collections, relays, informers and controllers of one
// process. It is a [prometheus.Collector], so a program that has a registry can register it there.
// [New] creates it. It is safe for concurrent use.
type Metrics struct {
	// Immutable after construction.
	counters []prometheus.Collector
	watches  watchCounters
	requests requestCounters
	commits  commitCounters
	relays   relayCounters
	informer informerCounters
	calls    controllerCounters
	labels   labelSet

	mu sync.Mutex
	// Guarded by mu.
	servers     []*watchserver.Server
	listeners   []func() (open, limit int64)
	collections []collection
	relayed     []relayed
	informers   []informed
	controllers []controlled
	stores      []func() StoreStats
	tables      []func() PostgresStats
}

// New returns a Metrics that measures nothing yet.
func New() *Metrics {
	m := new(Metrics)
	m.watches.create(m)
	m.requests.create(m)
	m.commits.create(m)
	m.relays.create(m)
	m.informer.create(m)
	m.calls.create(m)
	return m
}

// Handler returns a handler that responds with these metrics, and with metrics of the Go runtime
// and the process, in the format that the client accepts.
func (m *Metrics) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(m, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
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
	m.collectControllers(&s)
	m.collectStores(&s)
	m.collectTables(&s)
	s.send(out)
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "listwatch", Name: name, Help: help}, labels)
	m.counters = append(m.counters, c)
	return c
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(
		prometheus.HistogramOpts{Namespace: "listwatch", Name: name, Help: help, Buckets: buckets})
	m.counters = append(m.counters, h)
	return h
}

// seconds are the buckets of all histograms of durations, from 0.1 ms to 100 s.
var seconds = []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1, 3, 10, 30, 100}

// watchCounters are the metrics that the hooks of a watch update.
type watchCounters struct {
	opened, ended, events, bytes *prometheus.CounterVec
	lag                          prometheus.Histogram
	byResource                   sync.Map // watchserver.Resource → *sentCounters
}

// sentCounters are the counters that each write to the client of a watch updates.
type sentCounters struct{ events, bytes prometheus.Counter }

// requestCounters are the metrics of lists and writes, and of refused requests and connections.
type requestCounters struct {
	refused, lists, items, listBytes, writes *prometheus.CounterVec
	refusedConnections                       *prometheus.CounterVec
	listTook, writeTook                      prometheus.Histogram
}

// informerCounters are the metrics that the hooks of an informer update.
type informerCounters struct {
	lists, differences, listed, lost, undecodable *prometheus.CounterVec
	listTook                                      prometheus.Histogram
}

type informed struct {
	resource watchserver.Resource
	informer Informer
}

// controllerCounters are the metrics that the hook of a controller updates.
type controllerCounters struct {
	calls        *prometheus.CounterVec
	took, waited prometheus.Histogram
}

type controlled struct {
	name  string
	queue *workqueue.Queue[listwatch.Key]
}

// relayCounters are the metrics that the hooks of a relay update.
type relayCounters struct{ lost, replaced, patched *prometheus.CounterVec }

type relayed struct {
	resource watchserver.Resource
	encoding string
	relay    *relay.Relay
}

// commitCounters are the metrics that a store updates by [Metrics.Committed].
type commitCounters struct {
	took, batch prometheus.Histogram
	failed      *prometheus.CounterVec
}

type collection struct {
	resource watchserver.Resource
	source   interface{ Stats() listwatch.Stats }
}
