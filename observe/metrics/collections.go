package metrics

import (
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchserver"
)

var (
	objects         = newGauge("objects", "Objects in the current state.", resourceLabels...)
	objectBytes     = newGauge("object_bytes", "Bytes of the JSON of the current objects.", resourceLabels...)
	objectsExpiring = newGauge("objects_expiring", "Objects in the current state that have a TTL.", resourceLabels...)
	objectsExpired  = newCounter("objects_expired_total",
		"Objects deleted at the end of their TTL. It stays zero over etcd, which deletes them itself.",
		resourceLabels...)
	historyRecords = newGauge("history_writes", "Writes in the history.", resourceLabels...)
	historyBytes   = newGauge("history_bytes", "Estimated memory of the history.", resourceLabels...)
	historyAge     = newMaximum("history_age_seconds",
		"Age of the oldest write in the history. A watch can resume from a version that is not older.",
		resourceLabels...)
	historyAgeLimit = newGauge("history_age_limit_seconds",
		"Age up to which the history is to keep writes; missing if there is no limit.", resourceLabels...)
	historyBytesLimit = newGauge("history_bytes_limit",
		"Maximum memory of the history; missing if there is no limit.", resourceLabels...)
	droppedEarly = newCounter("history_dropped_early_total",
		"Writes that the history has dropped before history_age_limit_seconds, because of history_bytes_limit.",
		resourceLabels...)
	horizon = newMaximum("difference_horizon_version",
		"Version since which a client can receive the difference. A client with an older one receives the whole state.",
		resourceLabels...)
	objectsLimit = newGauge("objects_limit", "Quota of objects of the collection; missing if there is none.",
		resourceLabels...)
	bytesLimit = newGauge("object_bytes_limit", "Quota of bytes of the collection; missing if there is none.",
		resourceLabels...)
	newestVersion = newMaximum("newest_version", "Version of the current state.", resourceLabels...)
	frameBytes    = newGauge("frame_cache_bytes", "Bytes of the cached frames, which are encoded events.",
		resourceLabels...)
	framesBuilt = newCounter("frames_built_total",
		"Frames put into the cache. It grows slower than the number of sent events if watchers share frames.",
		resourceLabels...)
	wakeups = newCounter("watch_wakeups_total", "Times that a waiting watch was woken by a write.",
		resourceLabels...)
)

// AddCollection measures the sizes of source, which holds the objects of resource. For a relay,
// call [Metrics.AddRelay] instead.
func (m *Metrics) AddCollection(resource watchserver.Resource, source interface{ Stats() listwatch.Stats }) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.collections = append(m.collections, collection{resource, source})
}

func (m *Metrics) collectCollections(s *scrape) {
	for _, c := range m.collections {
		labels, stats := valuesOf(m.labels.of(c.resource)), c.source.Stats()
		s.set(objects, float64(stats.Objects), labels...)
		s.set(objectBytes, float64(stats.ObjectBytes), labels...)
		s.set(objectsExpiring, float64(stats.Expiring), labels...)
		s.set(objectsExpired, float64(stats.Expired), labels...)
		if c, ok := c.source.(interface{ Quota() (int, int64) }); ok {
			objects, bytes := c.Quota()
			setLimit(s, objectsLimit, int64(objects), labels...)
			setLimit(s, bytesLimit, bytes, labels...)
		}
		s.set(historyRecords, float64(stats.Records), labels...)
		s.set(historyBytes, float64(stats.HistoryBytes), labels...)
		if stats.Window.Age > 0 {
			s.set(historyAgeLimit, stats.Window.Age.Seconds(), labels...)
		}
		setLimit(s, historyBytesLimit, stats.Window.Bytes, labels...)
		s.set(droppedEarly, float64(stats.Window.DroppedEarly), labels...)
		s.set(horizon, float64(stats.Horizon), labels...)
		s.set(newestVersion, float64(stats.Newest), labels...)
		s.set(frameBytes, float64(stats.Frames.Bytes), labels...)
		s.set(framesBuilt, float64(stats.Frames.Built), labels...)
		s.set(wakeups, float64(stats.Wakeups), labels...)
		age := 0.0
		if !stats.Window.OldestAt.IsZero() {
			age = s.now.Sub(stats.Window.OldestAt).Seconds()
		}
		s.set(historyAge, age, labels...)
	}
}

// setLimit sets g to limit. If limit is zero or negative, there is no limit and g has no value.
func setLimit(s *scrape, g *gauge, limit int64, labels ...string) {
	if limit > 0 {
		s.set(g, float64(limit), labels...)
	}
}
