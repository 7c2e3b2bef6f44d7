package metrics

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/kubestatus"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchserver"
)

var (
	openWatches = newGauge("watches", "Open watches.", "group", "version", "resource", "transport", "framing")
	behind      = newGauge("watches_behind", "Open watches with pending events.", resourceLabels...)
	stalled     = newGauge("watches_stalled", "Open watches whose client has accepted no data for a second.",
		resourceLabels...)
	lagVersions = newMaximum("watch_lag_versions",
		"Greatest number of versions between a watch with pending events and the newest version. "+
			"Versions count the writes of the whole database.", resourceLabels...)
	projections = newGauge("watch_projections",
		"Different projections of the open watches. Each costs time in each write.", resourceLabels...)
	draining     = newGauge("draining", "1 while the server ends its watches and refuses new ones, otherwise 0.")
	requestSeats = newGauge("request_seats", "Seats that reads and writes have taken.")
	seatLimit    = newGauge("request_seats_limit", "Maximum number of seats; missing if there is no limit.")
	executing    = newGauge("writes_executing", "Writes being executed.")
	writeLimit   = newGauge("writes_executing_limit",
		"Maximum number of writes being executed; missing if there is no limit.")
	requestMemory     = newGauge("request_memory_bytes", "Memory for bodies and lists.")
	requestMemoryMost = newGauge("request_memory_limit_bytes",
		"Memory that stored data leaves for bodies and lists; missing if there is no limit.")
	storedMemory     = newGauge("stored_memory_bytes", "Estimated memory of objects and history.")
	storedMemoryMost = newGauge("stored_memory_limit_bytes",
		"Memory for objects and history; missing if there is no limit.")

	connections     = newGauge("connections", "Open connections to the listeners of the API.")
	connectionLimit = newGauge("connections_limit", "Maximum number of connections; missing if there is no limit.")

	watchLimit = newGauge("watches_limit", "Maximum number of open watches; missing if there is no limit.")
)

// stalledAfter is the duration of a write after which a watch counts as stalled.
const stalledAfter = time.Second

func (c *watchCounters) create(m *Metrics) {
	c.opened = m.counter("watches_opened_total", "Watches accepted.", "transport", "framing")
	c.ended = m.counter("watches_ended_total", "Watches ended, by reason.", "transport", "reason")
	c.events = m.counter("watch_events_total", "Events written to watches.", resourceLabels...)
	c.bytes = m.counter("watch_bytes_total", "Bytes written to watches, after compression.", resourceLabels...)
	c.lag = m.histogram("watch_lag_seconds",
		"Time from the commit of the oldest event in a write of a watch to the end of the write.", seconds)
}

func (c *requestCounters) create(m *Metrics) {
	c.refused = m.counter("requests_refused_total",
		"Error responses, by HTTP status; reason is the limit that was exceeded, if any.", "code", "reason")
	c.refusedConnections = m.counter("connections_refused_total",
		"Connections closed because of the limit of connections.")
	c.refusedConnections.WithLabelValues() // starts at zero, so that the first one is an increase
	c.lists = m.counter("lists_total", "Lists served.", resourceLabels...)
	c.items = m.counter("list_objects_total", "Objects in the lists served.", resourceLabels...)
	c.listBytes = m.counter("list_bytes_total", "Bytes of the lists served, after compression.", resourceLabels...)
	c.writes = m.counter("writes_total", "Writes that succeeded, without dry runs.", resourceLabels...)
	c.listTook = m.histogram("list_duration_seconds", "Time from the start of a list to the end of the response.",
		seconds)
	c.writeTook = m.histogram("write_duration_seconds",
		"Time from the start of a write that succeeded to the end of the response.", seconds)
}

// Trace returns the hooks that a [watchserver.Server] calls. Several servers may share them.
func (m *Metrics) Trace() *watchserver.Trace {
	return &watchserver.Trace{
		Refused: func(_ context.Context, _ watchserver.Request, err error) {
			m.requests.refused.WithLabelValues(strconv.Itoa(kubestatus.Of(err).Code), limitOf(err)).Inc()
		},
		Listed: func(_ context.Context, l watchserver.List) {
			labels := valuesOf(m.labels.of(l.Resource))
			m.requests.lists.WithLabelValues(labels...).Inc()
			m.requests.items.WithLabelValues(labels...).Add(float64(l.Items))
			m.requests.listBytes.WithLabelValues(labels...).Add(float64(l.Bytes))
			m.requests.listTook.Observe(l.Took.Seconds())
		},
		Changed: func(_ context.Context, c watchserver.Change) {
			if !c.DryRun {
				m.requests.writes.WithLabelValues(valuesOf(m.labels.of(c.Resource))...).Inc()
				m.requests.writeTook.Observe(c.Took.Seconds())
			}
		},
		Opened: func(_ context.Context, w watchserver.Watch) {
			m.watches.opened.WithLabelValues(w.Transport, w.MediaType).Inc()
		},
		Sent: func(_ context.Context, w watchserver.Watch, sent watchserver.Write) {
			c := m.sentCounters(w.Resource)
			c.events.Add(float64(sent.Events))
			c.bytes.Add(float64(sent.Bytes))
			if sent.Lag > 0 {
				m.watches.lag.Observe(sent.Lag.Seconds())
			}
		},
		Closed: func(_ context.Context, w watchserver.Watch, reason watchserver.EndReason, _ error) {
			m.watches.ended.WithLabelValues(w.Transport, strings.ReplaceAll(string(reason), " ", "_")).Inc()
		},
	}
}

// limitOf returns the name of the limit that err reports, or "".
func limitOf(err error) string {
	if e, ok := errors.AsType[interface {
		error
		Limit() string
	}](err); ok {
		return e.Limit()
	}
	if e, ok := errors.AsType[*store.QuotaError](err); ok {
		return "quota_" + e.Quota
	}
	return ""
}

// ConnectionRefused counts a connection that was closed because of a limit.
func (m *Metrics) ConnectionRefused() { m.requests.refusedConnections.WithLabelValues().Inc() }

// sentCounters returns the counters of the watches of r.
func (m *Metrics) sentCounters(r watchserver.Resource) *sentCounters {
	if c, ok := m.watches.byResource.Load(r); ok {
		return c.(*sentCounters)
	}
	labels := valuesOf(m.labels.of(r))
	c := &sentCounters{m.watches.events.WithLabelValues(labels...), m.watches.bytes.WithLabelValues(labels...)}
	kept, _ := m.watches.byResource.LoadOrStore(r, c)
	return kept.(*sentCounters)
}

// AddServer measures the open watches of s, and how much of its limits the requests use.
func (m *Metrics) AddServer(s *watchserver.Server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.servers = append(m.servers, s)
}

// AddListener measures the connections of a listener. stats returns the number of open connections,
// and their limit, or 0 if there is none. It is called for each scrape, possibly concurrently.
func (m *Metrics) AddListener(stats func() (open, limit int64)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listeners = append(m.listeners, stats)
}

func (m *Metrics) collectWatches(s *scrape) {
	newest := make(map[watchserver.Resource]listwatch.Version)
	for _, c := range m.collections {
		newest[c.resource] = max(newest[c.resource], c.source.Stats().Newest)
	}
	for _, stats := range m.listeners {
		open, limit := stats()
		s.set(connections, float64(open))
		setLimit(s, connectionLimit, limit)
	}
	for _, server := range m.servers {
		setLimit(s, watchLimit, int64(server.Limits.Watches))
		s.set(draining, boolean(server.Draining()))
		collectUsage(s, server)
		type projection struct {
			of     watchserver.Resource
			fields string
		}
		seen := make(map[projection]bool)
		for _, w := range server.Watches() {
			labels := valuesOf(m.labels.of(w.Resource))
			s.set(openWatches, 1, append(labels, w.Transport, w.MediaType)...)
			s.set(behind, boolean(!w.CaughtUp), labels...)
			s.set(stalled, boolean(w.Writing >= stalledAfter), labels...)
			lag := 0.0
			if v := newest[w.Resource]; !w.CaughtUp && w.Version != 0 && v > w.Version {
				lag = float64(v - w.Version)
			}
			s.set(lagVersions, lag, labels...)
			p := projection{w.Resource, w.Fields}
			s.set(projections, boolean(p.fields != "" && !seen[p]), labels...)
			seen[p] = true
		}
	}
}

func collectUsage(s *scrape, server *watchserver.Server) {
	used, limit := server.Usage()
	for _, m := range []struct {
		gauge, most *gauge
		used, limit int64
	}{
		{requestSeats, seatLimit, used.Requests, limit.Requests},
		{executing, writeLimit, used.Writes, limit.Writes},
		{requestMemory, requestMemoryMost, used.RequestBytes, limit.RequestBytes},
		{storedMemory, storedMemoryMost, used.StoredBytes, limit.StoredBytes},
	} {
		s.set(m.gauge, float64(m.used))
		setLimit(s, m.most, m.limit)
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
