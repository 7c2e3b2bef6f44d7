package benchcmd

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/listwatch/listwatch/cmd/listwatch/internal/cli"
)

// A Result holds the measurements of one transport. Durations are in milliseconds.
type Result struct {
	Transport string  `json:"transport"`
	Watchers  int     `json:"watchers"`
	Seconds   float64 `json:"seconds"`
	// ReadOnly is the reason why nothing was written. It is empty if objects were written.
	ReadOnly string `json:"readOnly,omitempty"`
	// InitialEvents is the average number of objects that a watcher has received at its start.
	InitialEvents float64 `json:"initialEventsPerWatcher"`
	// FirstEvent is the time until a watcher has its first event, and Synced is the time until it
	// has all initial events.
	FirstEvent Quantiles `json:"firstEventMilliseconds"`
	Synced     Quantiles `json:"syncedMilliseconds"`

	Writes       int       `json:"writes"`
	FailedWrites int       `json:"failedWrites"`
	WriteTime    Quantiles `json:"writeMilliseconds"`

	// Latency is the time from the start of a write until a watcher has the event.
	Latency         Quantiles `json:"latencyMilliseconds"`
	Events          int64     `json:"events"`
	ForeignEvents   int64     `json:"foreignEvents"`
	Bookmarks       int64     `json:"bookmarks"`
	EventsPerSecond float64   `json:"eventsPerSecond"`
	// Bytes are the bytes that the watchers have received on the wire.
	Bytes int64 `json:"bytes"`

	// Missed, Duplicates and OutOfOrder count events of all watchers together.
	Missed     int `json:"missed"`
	Duplicates int `json:"duplicates"`
	OutOfOrder int `json:"outOfOrder"`
	// Reconnects counts the lost connections. Errors holds the errors that ended watches, and the
	// last error of a write.
	Reconnects int64    `json:"reconnects"`
	Errors     []string `json:"errors,omitempty"`

	Timeline []Sample `json:"timeline"`
}

func (r *run) result(f *fleet, elapsed time.Duration) *Result {
	acknowledged, writes := r.writer.log.snapshot()
	c := r.recorder
	c.mu.Lock()
	result := &Result{
		Transport: r.transport, Watchers: len(f.watchers), Seconds: elapsed.Seconds(),
		InitialEvents: float64(c.initial) / float64(len(f.watchers)), FirstEvent: c.firstEvent.quantiles(),
		Synced: c.synced.quantiles(),
		Writes: writes, FailedWrites: r.writer.log.failed, WriteTime: c.write.quantiles(),
		Latency: c.all.quantiles(), Events: c.received, ForeignEvents: c.foreign, Bookmarks: c.bookmarks,
		EventsPerSecond: float64(c.received+c.foreign) / elapsed.Seconds(), Bytes: r.bytes.Load(),
		Reconnects: c.reconnects, Timeline: c.timeline,
	}
	c.mu.Unlock()
	if r.readOnly != nil {
		result.ReadOnly = cli.OneLine(r.readOnly)
	}
	for _, w := range f.watchers {
		result.Missed += w.missed(acknowledged)
		w.mu.Lock()
		result.Duplicates += w.duplicates
		result.OutOfOrder += w.outOfOrder
		if w.err != nil {
			result.Errors = append(result.Errors, "a watch ended: "+cli.OneLine(w.err))
		}
		w.mu.Unlock()
	}
	if err := r.writer.log.lastError; err != nil {
		result.Errors = append(result.Errors,
			fmt.Sprintf("%d writes failed: %s", result.FailedWrites, cli.OneLine(err)))
	}
	return result
}

// A row is one line of the table.
type row struct {
	name  string
	value func(*Result) string
}

var rows = []row{
	{"transport", func(r *Result) string { return r.Transport }},
	{"watchers", func(r *Result) string { return fmt.Sprint(r.Watchers) }},
	{"first event, ms", func(r *Result) string { return r.FirstEvent.String() }},
	{"all initial events, ms", func(r *Result) string { return r.Synced.String() }},
	{"initial events per watcher", func(r *Result) string { return fmt.Sprintf("%.0f", r.InitialEvents) }},
	{"writes", func(r *Result) string { return fmt.Sprintf("%d (%.0f/s)", r.Writes, float64(r.Writes)/r.Seconds) }},
	{"failed writes", func(r *Result) string { return fmt.Sprint(r.FailedWrites) }},
	{"time of a write, ms", func(r *Result) string { return r.WriteTime.String() }},
	{"latency, ms", func(r *Result) string { return r.Latency.String() }},
	{
		"events", func(r *Result) string {
			return fmt.Sprintf("%d (%.0f/s)", r.Events+r.ForeignEvents, r.EventsPerSecond)
		},
	},
	{"of other writers", func(r *Result) string { return fmt.Sprint(r.ForeignEvents) }},
	{"bookmarks", func(r *Result) string { return fmt.Sprint(r.Bookmarks) }},
	{"received, MiB", func(r *Result) string { return fmt.Sprintf("%.1f", float64(r.Bytes)/(1<<20)) }},
	{"missed", func(r *Result) string { return fmt.Sprint(r.Missed) }},
	{"received twice", func(r *Result) string { return fmt.Sprint(r.Duplicates) }},
	{"out of order", func(r *Result) string { return fmt.Sprint(r.OutOfOrder) }},
	{"lost connections", func(r *Result) string { return fmt.Sprint(r.Reconnects) }},
}

// String returns the quantiles for the table.
func (q Quantiles) String() string {
	if q == (Quantiles{}) {
		return "-"
	}
	return fmt.Sprintf("p50 %.2f, p90 %.2f, p99 %.2f, max %.2f", q.P50, q.P90, q.P99, q.Max)
}

// cells returns the table: the name of each row, followed by a cell for each result.
func cells(results []*Result) [][]string {
	var table [][]string
	for _, row := range rows {
		line := []string{row.name}
		for _, r := range results {
			line = append(line, row.value(r))
		}
		table = append(table, line)
	}
	return table
}

func writeTable(out io.Writer, results []*Result) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, line := range cells(results) {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}
