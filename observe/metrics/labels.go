package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/listwatch/listwatch/watchserver"
)

// MaxResources is the maximum number of resources with their own series. All further resources
// share the series of a resource named "other", so that a server with thousands of resources does
// not overload Prometheus.
const MaxResources = 50

// maxWatchSeries is the maximum number of series of the gauge of open watches. The gauge needs a
// limit of its own, because it has more labels than the resource.
const maxWatchSeries = 300

// other stands for the resources that have no series of their own.
var other = watchserver.Resource{Name: "other"}

// A labelSet assigns labels to resources.
type labelSet struct {
	mu sync.Mutex
	// Guarded by mu.
	known map[watchserver.Resource]bool
}

// of returns r itself, or [other] if too many resources were seen before r.
func (l *labelSet) of(r watchserver.Resource) watchserver.Resource {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.known[r]:
		return r
	case len(l.known) >= MaxResources:
		return other
	case l.known == nil:
		l.known = make(map[watchserver.Resource]bool)
	}
	l.known[r] = true
	return r
}

var resourceLabels = []string{"group", "version", "resource"}

func valuesOf(r watchserver.Resource) []string { return []string{r.Group, r.Version, r.Name} }

// A gauge is a metric whose values are read when it is scraped.
type gauge struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	// hasLabels is false if there is only one series.
	hasLabels bool
	// max is true if values with the same labels are combined into their maximum instead of their
	// sum.
	max bool
}

// allGauges holds every gauge of the package.
var allGauges []*gauge

func newGauge(name, help string, labels ...string) *gauge {
	g := &gauge{
		desc: prometheus.NewDesc("listwatch_"+name, help, labels, nil), kind: prometheus.GaugeValue,
		hasLabels: len(labels) > 0,
	}
	allGauges = append(allGauges, g)
	return g
}

func newCounter(name, help string, labels ...string) *gauge {
	g := newGauge(name, help, labels...)
	g.kind = prometheus.CounterValue
	return g
}

func newMaximum(name, help string, labels ...string) *gauge {
	g := newGauge(name, help, labels...)
	g.max = true
	return g
}
