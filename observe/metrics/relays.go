package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/watchserver"
)

// relayLabels are the labels of a relay. The relay of a cluster may have several relays of one
// resource, in different encodings.
var relayLabels = append(slices.Clone(resourceLabels), "encoding")

// relayValues returns the values of relayLabels.
func (m *Metrics) relayValues(r watchserver.Resource, encoding string) []string {
	return append(valuesOf(m.labels.of(r)), cmp.Or(encoding, "json"))
}

var (
	relayReady = newGauge("relay_ready", "1 if the relay has the complete state, otherwise 0.", relayLabels...)
	relayLag   = newMaximum("relay_lag_seconds",
		"Upper bound on the age of the state of the relay; missing if unknown.", relayLabels...)
	relayProbes = newGauge("relay_probes_failing",
		"1 if the relay cannot probe the upstream, so that reads of the newest state pass through.", relayLabels...)
	relaySilence = newMaximum("relay_silence_seconds", "Time since the upstream has sent anything.", relayLabels...)
	relayBehind  = newMaximum("relay_lag_versions",
		"Versions between the relay and the newest version that the upstream has reported.", relayLabels...)
)

func (c *relayCounters) create(m *Metrics) {
	c.lost = m.counter("relay_upstream_lost_total",
		"Times that the watch of the upstream has ended or could not be opened.", relayLabels...)
	c.replaced = m.counter("relay_replaced_total",
		"Times that the relay has adopted a whole state, by reason. Each time after the first expires its watches.",
		append(slices.Clone(relayLabels), "reason")...)
	c.patched = m.counter("relay_patched_total",
		"Times that the relay has fetched the difference to a newer state. Each time expires its watches.",
		relayLabels...)
}

// RelayTrace returns a copy of t whose hooks also update the metrics. The copy is for the relay
// that serves resource in the named encoding. An empty name means JSON. t may be nil.
func (m *Metrics) RelayTrace(resource watchserver.Resource, encoding string, t *relay.Trace) *relay.Trace {
	labels := m.relayValues(resource, encoding)
	lost, patched := m.relays.lost.WithLabelValues(labels...), m.relays.patched.WithLabelValues(labels...)
	var inner relay.Trace
	if t != nil {
		inner = *t
	}
	counting := inner
	counting.UpstreamLost = func(err error, wait time.Duration, relist bool) {
		lost.Inc()
		if inner.UpstreamLost != nil {
			inner.UpstreamLost(err, wait, relist)
		}
	}
	counting.Replaced = func(v listwatch.Version, objects int, why string) {
		m.relays.replaced.WithLabelValues(append(slices.Clone(labels), why)...).Inc()
		if inner.Replaced != nil {
			inner.Replaced(v, objects, why)
		}
	}
	counting.Patched = func(since, v listwatch.Version) {
		patched.Inc()
		if inner.Patched != nil {
			inner.Patched(since, v)
		}
	}
	return &counting
}

// AddRelay measures the sizes and the health of r, which serves resource in the named encoding,
// until remove is called. An empty name means JSON. The sizes of the relays of one resource are
// added.
func (m *Metrics) AddRelay(resource watchserver.Resource, encoding string, r *relay.Relay) (remove func()) {
	m.AddCollection(resource, r)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.relayed = append(m.relayed, relayed{resource, encoding, r})
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.relayed = slices.DeleteFunc(m.relayed, func(o relayed) bool { return o.relay == r })
		m.collections = slices.DeleteFunc(m.collections, func(o collection) bool { return o.source == r })
	}
}

func (m *Metrics) collectRelays(s *scrape) {
	for _, r := range m.relayed {
		labels, h := m.relayValues(r.resource, r.encoding), r.relay.Health()
		s.set(relayReady, boolean(h.Ready), labels...)
		s.set(relayProbes, boolean(r.relay.ProbeErr() != nil), labels...)
		if h.Lag >= 0 {
			s.set(relayLag, h.Lag.Seconds(), labels...)
		}
		if !h.LastHeard.IsZero() {
			s.set(relaySilence, s.now.Sub(h.LastHeard).Seconds(), labels...)
		}
		versions := 0.0
		if h.UpstreamVersion > h.Version {
			versions = float64(h.UpstreamVersion - h.Version)
		}
		s.set(relayBehind, versions, labels...)
	}
}
