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

// A defective source has one defect, every so often. What it serves besides is that of the source within.
type defective struct {
	listwatch.Source
	count atomic.Int64
	every int64
	watch func(d *defective, q listwatch.Query) listwatch.Query         // before the watch; nil: as it is
	event func(d *defective, e listwatch.Event, dst *[]listwatch.Event) // instead of each event; nil: as it is
	fail  func(q *listwatch.Query, err error) (again bool)              // when a watch can't begin
}

// now reports whether it is time for the defect.
func (d *defective) now() bool { return d.count.Add(1)%d.every == 0 }

// Describe is that of the source within.
func (d *defective) Describe() listwatch.Description { return listwatch.Describe(d.Source) }

func (d *defective) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if d.watch != nil {
		q = d.watch(d, q)
	}
	w, err := d.Source.Watch(ctx, q)
	if err != nil && d.fail != nil && d.fail(&q, err) {
		w, err = d.Source.Watch(ctx, q)
	}
	if err != nil || d.event == nil {
		return w, err
	}
	return &defectiveWatcher{Watcher: w, source: d}, nil
}

type defectiveWatcher struct {
	listwatch.Watcher
	source *defective
	queue  []listwatch.Event // owned by the reader
}

func (w *defectiveWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	for len(w.queue) == 0 {
		var batch [16]listwatch.Event
		n, err := w.Watcher.Next(ctx, batch[:])
		for _, e := range batch[:n] {
			w.source.event(w.source, e, &w.queue)
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(dst, w.queue)
	w.queue = w.queue[n:]
	return n, nil
}

func isChange(e listwatch.Event) bool { return !e.Initial && e.Type <= listwatch.Deleted }

// onChanges returns a defect of single changes.
func onChanges(f func(e listwatch.Event) []listwatch.Event) func(*defective, listwatch.Event, *[]listwatch.Event) {
	return func(d *defective, e listwatch.Event, dst *[]listwatch.Event) {
		if isChange(e) && d.now() {
			*dst = append(*dst, f(e)...)
			return
		}
		*dst = append(*dst, e)
	}
}

// defects are what a server may do wrong, and the rule it breaks.
var defects = []struct {
	name string
	rule checker.Guarantee
	make func() *defective
}{
	{"drops an event", checker.Reliable, func() *defective {
		return &defective{every: 100, event: onChanges(func(listwatch.Event) []listwatch.Event { return nil })}
	}},
	{"sends an event twice", checker.Unique, func() *defective {
		return &defective{every: 100, event: onChanges(func(e listwatch.Event) []listwatch.Event { return []listwatch.Event{e, e} })}
	}},
	{"calls a change a creation", checker.ContentExact, func() *defective {
		return &defective{every: 20, event: onChanges(func(e listwatch.Event) []listwatch.Event {
			return []listwatch.Event{{Type: listwatch.Added, Object: e.Object, Version: e.Version}}
		})}
	}},
	{"invents a version", checker.NoPhantom, func() *defective {
		return &defective{every: 100, event: onChanges(func(e listwatch.Event) []listwatch.Event {
			o := e.Object.At(e.Version + 1<<40)
			return []listwatch.Event{{Type: e.Type, Object: o, Version: o.Version}}
		})}
	}},
	{"bookmarks what it has not sent", checker.Bookmarkable, func() *defective {
		d := &defective{every: 50}
		d.event = onChanges(func(e listwatch.Event) []listwatch.Event {
			return []listwatch.Event{listwatch.NewBookmark(d.Describe(), e.Version, false), e}
		})
		return d
	}},
	{"resumes too late", checker.Resumable, func() *defective {
		return &defective{every: 2, watch: func(d *defective, q listwatch.Query) listwatch.Query {
			if q.Start == listwatch.At && d.now() {
				q.Version += 5
			}
			return q
		}}
	}},
	{"forgets an object of the state", checker.SnapshotExact, func() *defective {
		return &defective{every: 8, event: func(d *defective, e listwatch.Event, dst *[]listwatch.Event) {
			if !e.Initial || !d.now() {
				*dst = append(*dst, e)
			}
		}}
	}},
	{"goes on at the newest version where history is gone", checker.ExpiryJustified, func() *defective {
		return &defective{fail: func(q *listwatch.Query, err error) bool {
			q.Start, q.Version, q.InitialEvents = listwatch.Newest, 0, listwatch.No
			return errors.Is(err, listwatch.Expired)
		}}
	}},
	{"says Expired without need", checker.ExpiryJustified, func() *defective {
		return &defective{every: 3, watch: func(d *defective, q listwatch.Query) listwatch.Query {
			if q.Start == listwatch.At && !q.SendsInitialEvents() && d.now() {
				q.Version = 1
			}
			return q
		}}
	}},
}

// A lane that no defect can fail proves nothing.
func TestDefectiveServersAreCaught(t *testing.T) {
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tm := simulated
				tm.run = 2 * time.Minute
				// Watchers of a broken server may never come to the end.
				tm.patience = 10 * time.Minute
				w, err := newWorld(setup{name: d.name, seed: 1, network: &inMemory{}, times: tm})
				if err != nil {
					t.Fatal(err)
				}
				source := d.make()
				source.Source = w.things
				w.server.source = source
				w.server.stop(true)
				if err := w.server.start(); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), tm.run+tm.patience)
				defer cancel()
				r, err := checker.Check(w.run(ctx), nil)
				if err != nil {
					t.Fatal(err)
				}
				if r.Summary.ByGuarantee[d.rule] == 0 {
					t.Errorf("want violations of %s, got:\n%s", d.rule, r.Summary.String())
				}
				t.Log(r.Summary.String())
			})
		})
	}
}
