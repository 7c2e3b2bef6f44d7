package robustness

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/checker"
)

// A defectiveSource is a source with one defect, which occurs in every interval-th call of isDue.
type defectiveSource struct {
	listwatch.Source
	count    atomic.Int64
	interval int64
	// changeQuery, if not nil, changes the query of each watch.
	changeQuery func(d *defectiveSource, q listwatch.Query) listwatch.Query
	// changeEvent, if not nil, appends the replacement of each event to dst.
	changeEvent func(d *defectiveSource, e listwatch.Event, dst *[]listwatch.Event)
	// onWatchError, if not nil, reports whether to retry a failed watch. It may change q.
	onWatchError func(q *listwatch.Query, err error) (again bool)
}

// isDue counts its calls, and reports whether the defect occurs in this one.
func (d *defectiveSource) isDue() bool { return d.count.Add(1)%d.interval == 0 }

// Describe returns the description of the wrapped source.
func (d *defectiveSource) Describe() listwatch.Description { return listwatch.Describe(d.Source) }

func (d *defectiveSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if d.changeQuery != nil {
		q = d.changeQuery(d, q)
	}
	w, err := d.Source.Watch(ctx, q)
	if err != nil && d.onWatchError != nil && d.onWatchError(&q, err) {
		w, err = d.Source.Watch(ctx, q)
	}
	if err != nil || d.changeEvent == nil {
		return w, err
	}
	return &defectiveWatcher{Watcher: w, source: d}, nil
}

type defectiveWatcher struct {
	listwatch.Watcher
	source *defectiveSource
	queue  []listwatch.Event // accessed only by Next
}

func (d *defectiveWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	for len(d.queue) == 0 {
		var batch [16]listwatch.Event
		n, err := d.Watcher.Next(ctx, batch[:])
		for _, e := range batch[:n] {
			d.source.changeEvent(d.source, e, &d.queue)
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(dst, d.queue)
	d.queue = d.queue[n:]
	return n, nil
}

func isChange(e listwatch.Event) bool { return !e.Initial && e.Type <= listwatch.Deleted }

// onChanges returns a changeEvent function. Whenever the defect is due, this function replaces a
// change with the events that f returns.
func onChanges(
	f func(e listwatch.Event) []listwatch.Event,
) func(*defectiveSource, listwatch.Event, *[]listwatch.Event) {
	return func(
		d *defectiveSource, e listwatch.Event, dst *[]listwatch.Event,
	) {
		if isChange(e) && d.isDue() {
			*dst = append(*dst, f(e)...)
			return
		}
		*dst = append(*dst, e)
	}
}

// defects lists defects of a server, and the guarantee that each breaks.
var defects = []struct {
	name      string
	guarantee checker.Guarantee
	newSource func() *defectiveSource
}{
	{"drops an event", checker.Reliable, func() *defectiveSource {
		return &defectiveSource{
			interval: 100, changeEvent: onChanges(func(listwatch.Event) []listwatch.Event { return nil }),
		}
	}},
	{"sends an event twice", checker.Unique, func() *defectiveSource {
		return &defectiveSource{
			interval: 100, changeEvent: onChanges(func(e listwatch.Event) []listwatch.Event {
				return []listwatch.Event{
					e, e,
				}
			}),
		}
	}},
	{"sends ADDED for a change", checker.ContentExact, func() *defectiveSource {
		return &defectiveSource{interval: 20, changeEvent: onChanges(func(e listwatch.Event) []listwatch.Event {
			return []listwatch.Event{{Type: listwatch.Added, Object: e.Object, Version: e.Version}}
		})}
	}},
	{"invents a version", checker.NoPhantom, func() *defectiveSource {
		return &defectiveSource{interval: 100, changeEvent: onChanges(func(e listwatch.Event) []listwatch.Event {
			o := e.Object.At(e.Version + 1<<40)
			return []listwatch.Event{{Type: e.Type, Object: o, Version: o.Version}}
		})}
	}},
	{"sends a bookmark too early", checker.Bookmarkable, func() *defectiveSource {
		d := &defectiveSource{interval: 50}
		d.changeEvent = onChanges(func(e listwatch.Event) []listwatch.Event {
			return []listwatch.Event{listwatch.NewBookmark(d.Describe(), listwatch.State{Version: e.Version}), e}
		})
		return d
	}},
	{"resumes too late", checker.Resumable, func() *defectiveSource {
		return &defectiveSource{interval: 1, changeQuery: func(d *defectiveSource, q listwatch.Query) listwatch.Query {
			if q.Start == listwatch.StartAt && d.isDue() {
				q.Version += 5
			}
			return q
		}}
	}},
	{"omits an initial event", checker.SnapshotExact, func() *defectiveSource {
		return &defectiveSource{interval: 8, changeEvent: func(
			d *defectiveSource, e listwatch.Event, dst *[]listwatch.Event,
		) {
			if !e.Initial || !d.isDue() {
				*dst = append(*dst, e)
			}
		}}
	}},
	{"skips discarded history silently", checker.ExpiryJustified, func() *defectiveSource {
		return &defectiveSource{onWatchError: func(q *listwatch.Query, err error) bool {
			q.Start, q.Version, q.InitialEvents = listwatch.StartNewest, 0, listwatch.InitialEventsNo
			return errors.Is(err, listwatch.Expired)
		}}
	}},
	{"sends Expired without reason", checker.ExpiryJustified, func() *defectiveSource {
		return &defectiveSource{interval: 3, changeQuery: func(d *defectiveSource, q listwatch.Query) listwatch.Query {
			if q.Start == listwatch.StartAt && !q.SendsInitialEvents() && d.isDue() {
				q.Version = 1
			}
			return q
		}}
	}},
}

func TestCheckerDetectsDefectiveServers(t *testing.T) {
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				timings := simulatedTimings
				timings.duration = time.Minute
				// Watchers of a defective server may never reach the target version, so end the run
				// sooner than in other simulations.
				timings.maxOvertime = 3 * time.Minute
				c, err := newCluster(clusterOptions{name: d.name, seed: 1, network: &memoryNetwork{}, timings: timings})
				if err != nil {
					t.Fatal(err)
				}
				source := d.newSource()
				source.Source = c.things
				c.server.source = source
				c.server.stop(true)
				if err := c.server.start(); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), timings.duration+timings.maxOvertime)
				defer cancel()
				r, err := checker.Check(c.run(ctx), nil)
				if err != nil {
					t.Fatal(err)
				}
				if r.Summary.ByGuarantee[d.guarantee] == 0 {
					t.Errorf("want violations of %s, got:\n%s", d.guarantee, r.Summary.String())
				}
				t.Log(r.Summary.String())
			})
		})
	}
}
