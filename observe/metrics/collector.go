package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

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
	s.send(out)
}
