package metrics

import (
	"slices"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/watchserver"
)

// The metrics of informers are modelled on KEP-4346. These gauges show the state of an informer;
// informerCounters counts its lists, lost watches and decoding failures.
var (
	informerObjects = newGauge("informer_objects", "Objects in the local store of an informer.", resourceLabels...)
	informerVersion = newMaximum("informer_version", "Version of the local store.", resourceLabels...)
	informerQueued  = newGauge("informer_queued_objects", "Objects with changes that are not in the local store yet.",
		resourceLabels...)
	informerPending = newGauge("informer_pending_notifications", "Notifications that handlers have not received yet.",
		resourceLabels...)
	informerSynced = newGauge("informer_synced", "Informers whose handlers have received the initial state.",
		resourceLabels...)
	informerLag = newMaximum("informer_lag_seconds",
		"Upper bound on the age of the local store; missing if unknown or not measured.", resourceLabels...)
	informerBehind = newMaximum("informer_lag_versions",
		"Versions between the local store and the newest version that the source has reported.", resourceLabels...)
)

func (c *informerCounters) create(m *Metrics) {
	c.lists = m.counter("informer_lists_total", "Times that an informer has replaced its whole state, by reason.",
		append(slices.Clone(resourceLabels), "reason")...)
	c.differences = m.counter("informer_differences_total",
		"Times that an informer has received the difference to a newer state.", resourceLabels...)
	c.listed = m.counter("informer_list_objects_total", "Objects in these states.", resourceLabels...)
	c.lost = m.counter("informer_watches_lost_total", "Watches that have ended or could not be opened.",
		resourceLabels...)
	c.undecodable = m.counter("informer_decode_failures_total", "Objects that could not be decoded or transformed.",
		resourceLabels...)
	c.listTook = m.histogram("informer_list_duration_seconds", "Time from the first object of a state to the last.",
		seconds)
}

// An Informer is an informer.Informer of any type.
type Informer interface{ Stats() informer.Stats }

// AddInformer measures the sizes of i, which follows resource.
func (m *Metrics) AddInformer(resource watchserver.Resource, i Informer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.informers = append(m.informers, informed{resource, i})
}

// InformerTrace returns the hooks for the field Trace of the informer that follows resource.
func (m *Metrics) InformerTrace(resource watchserver.Resource) *informer.Trace {
	labels, c := valuesOf(m.labels.of(resource)), &m.informer
	return &informer.Trace{
		Lost: func(error, time.Duration, bool) { c.lost.WithLabelValues(labels...).Inc() },
		Received: func(s informer.StateChange) {
			if s.Since != 0 {
				c.differences.WithLabelValues(labels...).Inc()
				return
			}
			c.lists.WithLabelValues(append(slices.Clone(labels), s.Reason)...).Inc()
			c.listed.WithLabelValues(labels...).Add(float64(s.Objects))
			c.listTook.Observe(s.Took.Seconds())
		},
		DecodeFailed: func(*listwatch.Object, error) { c.undecodable.WithLabelValues(labels...).Inc() },
	}
}

func (m *Metrics) collectInformers(s *scrape) {
	for _, i := range m.informers {
		labels, stats := valuesOf(m.labels.of(i.resource)), i.informer.Stats()
		s.set(informerObjects, float64(stats.Objects), labels...)
		s.set(informerVersion, float64(stats.Version), labels...)
		s.set(informerQueued, float64(stats.Queued), labels...)
		s.set(informerPending, float64(stats.Pending), labels...)
		s.set(informerSynced, boolean(stats.Synced), labels...)
		if stats.Lag.Time >= 0 {
			s.set(informerLag, stats.Lag.Time.Seconds(), labels...)
			s.set(informerBehind, float64(stats.Lag.Versions), labels...)
		}
	}
}
