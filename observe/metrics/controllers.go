package metrics

import (
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/controller"
	"github.com/listwatch/listwatch/workqueue"
)

const controllerLabel = "controller"

// The metrics of the queue of a controller.
var (
	controllerQueued  = newGauge("controller_queued_keys", "Keys that wait for a worker.", controllerLabel)
	controllerDelayed = newGauge("controller_delayed_keys", "Keys that wait for the end of a delay.", controllerLabel)
	controllerBusy    = newGauge("controller_keys_in_progress", "Keys that workers have.", controllerLabel)
	controllerWaiting = newMaximum("controller_queue_wait_seconds",
		"Time since the next key was added, or 0 if no key waits.", controllerLabel)
	controllerAdded   = newCounter("controller_added_keys_total", "Keys that were added to the queue.", controllerLabel)
	controllerRetried = newCounter("controller_retries_total", "Calls that are retried after an error.",
		controllerLabel)
)

func (c *controllerCounters) create(m *Metrics) {
	c.calls = m.counter("controller_calls_total",
		"Calls of the reconcile function, and calls that were skipped because an informer lags.",
		controllerLabel, "result")
	c.took = m.histogram("controller_call_duration_seconds", "Duration of a call of the reconcile function.", seconds)
	c.waited = m.histogram("controller_own_writes_wait_seconds",
		"Time for which a call has waited until informers had the writes of the previous one.", seconds)
}

// AddController measures a controller, whose name becomes a label. q is the queue of its
// controller.Options. The result is the hook for the field Called of these options.
func (m *Metrics) AddController(name string, q *workqueue.Queue[listwatch.Key]) (called func(controller.Call)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.controllers = append(m.controllers, controlled{name, q})
	success, failure := m.calls.calls.WithLabelValues(name, "success"), m.calls.calls.WithLabelValues(name, "error")
	skipped := m.calls.calls.WithLabelValues(name, "skipped")
	return func(c controller.Call) {
		m.calls.waited.Observe(c.Waited.Seconds())
		if c.Skipped {
			skipped.Inc()
			return
		}
		m.calls.took.Observe(c.Took.Seconds())
		if c.Err == nil {
			success.Inc()
		} else {
			failure.Inc()
		}
	}
}

func (m *Metrics) collectControllers(s *scrape) {
	for _, c := range m.controllers {
		stats := c.queue.Stats()
		s.set(controllerQueued, float64(stats.Queued), c.name)
		s.set(controllerDelayed, float64(stats.Delayed), c.name)
		s.set(controllerBusy, float64(stats.InProgress), c.name)
		s.set(controllerWaiting, stats.Waiting.Seconds(), c.name)
		s.set(controllerAdded, float64(stats.Added), c.name)
		s.set(controllerRetried, float64(stats.Retried), c.name)
	}
}
