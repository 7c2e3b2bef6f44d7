package conformance_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/listwatch/listwatch"
)

// A writeLog contains the acknowledged writes, as recorded by their writers. It is safe for
// concurrent use.
type writeLog struct {
	mu sync.Mutex
	// Guarded by mu.
	writes  map[listwatch.Version]*recordedWrite
	newest  listwatch.Version
	visible []int // number of events for each entry of selectors
	awaited map[listwatch.Version]chan struct{}
}

func newWriteLog() *writeLog {
	return &writeLog{
		writes: make(map[listwatch.Version]*recordedWrite), visible: make([]int, len(selectors)),
		awaited: make(map[listwatch.Version]chan struct{}),
	}
}

func (w *writeLog) add(write *recordedWrite) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes[write.version] = write
	w.newest = max(w.newest, write.version)
	for i, s := range selectors {
		if eventType, _ := write.expectedEvent(s); eventType != "" {
			w.visible[i]++
		}
	}
	if c := w.awaited[write.version]; c != nil {
		close(c)
		delete(w.awaited, write.version)
	}
}

// fewestVisible returns the number of events of the selector that has the fewest.
func (w *writeLog) fewestVisible() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Min(w.visible)
}

// newestVersion returns the newest acknowledged version.
func (w *writeLog) newestVersion() listwatch.Version {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.newest
}

// await returns the write of version v. It waits if necessary, because an event may arrive
// before its writer has recorded the write.
func (w *writeLog) await(ctx context.Context, v listwatch.Version) (*recordedWrite, error) {
	w.mu.Lock()
	write, c := w.writes[v], w.awaited[v]
	if write == nil && c == nil {
		c = make(chan struct{})
		w.awaited[v] = c
	}
	w.mu.Unlock()
	if write != nil {
		return write, nil
	}
	select {
	case <-c:
	case <-ctx.Done():
		return nil, fmt.Errorf("no writer recorded version %d: %w", v, ctx.Err())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes[v], nil
}

// history returns all writes in order.
func (w *writeLog) history() []*recordedWrite {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*recordedWrite
	for _, write := range w.writes {
		all = append(all, write)
	}
	slices.SortFunc(all, func(a, b *recordedWrite) int { return cmp.Compare(a.version, b.version) })
	return all
}

// The matrix test relies on the write log, so the log must detect every kind of defect.
func TestWriteLogDetectsEveryDefect(t *testing.T) {
	object := func(data string) *objectContent {
		c, err := newObjectContent([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	gold, bronze := map[string]string{"tier": "gold"}, map[string]string{"tier": "bronze"}
	history := []*recordedWrite{
		{version: 1, after: gold, now: object(`{"n":1}`)},
		{version: 2, before: gold, after: gold, now: object(`{"n":18446744073709551617}`), last: object(`{"n":1}`)},
		{version: 3, before: gold, after: bronze, now: object(`{"n":3}`), last: object(`{"n":2}`)},
		{version: 4, before: bronze, after: bronze, now: object(`{"n":4}`), last: object(`{"n":3}`)},
		{version: 5, before: bronze, after: gold, now: object(`{"n":5}`), last: object(`{"n":4}`)},
		{version: 6, before: gold, last: object(`{"n":5}`)},
	}
	s := selectors[0]
	correct := []receivedEvent{
		{"ADDED", 1, []byte(`{"n":1}`)},
		{"MODIFIED", 2, []byte(`{"n":18446744073709551617}`)},
		{"DELETED", 3, []byte(`{"n":2}`)},
		{"ADDED", 5, []byte(`{"n":5}`)},
		{"DELETED", 6, []byte(`{"n":5}`)},
	}
	verifyAll := func(byValue bool, events ...receivedEvent) error {
		var versions []listwatch.Version
		for _, a := range events {
			if err := history[a.version-1].verify(a, s, byValue); err != nil {
				return err
			}
			versions = append(versions, a.version)
		}
		return verifyOrder(history, s, versions)
	}
	for _, byValue := range []bool{false, true} {
		if err := verifyAll(byValue, correct...); err != nil {
			t.Errorf("correct events (by value: %v): %v", byValue, err)
		}
		for i := range correct {
			defects := map[string][]receivedEvent{
				"dropped":  slices.Delete(slices.Clone(correct), i, i+1),
				"repeated": slices.Insert(slices.Clone(correct), i, correct[i]),
				"retyped": slices.Replace(slices.Clone(correct), i, i+1,
					receivedEvent{"BOOKMARK", correct[i].version, correct[i].object}),
				"corrupted": slices.Replace(slices.Clone(correct), i, i+1,
					receivedEvent{correct[i].eventType, correct[i].version, []byte(`{"n":18446744073709551616}`)}),
				"added": slices.Insert(slices.Clone(correct), i, receivedEvent{"MODIFIED", 4, []byte(`{"n":4}`)}),
			}
			if i > 0 {
				defects["swapped"] = slices.Replace(slices.Clone(correct), i-1, i+1, correct[i], correct[i-1])
			}
			for what, events := range defects {
				if verifyAll(byValue, events...) == nil {
					t.Errorf("%s event %d was not detected (by value: %v)", what, i, byValue)
				}
			}
		}
	}
	if err := verifyAll(true, append([]receivedEvent{{"ADDED", 1, []byte(` {"n":1.0}`)}}, correct[1:]...)...); err !=
		nil {
		t.Errorf("another encoding of the same value: %v", err)
	}
	if verifyAll(false, append([]receivedEvent{{"ADDED", 1, []byte(`{"n":1.0}`)}}, correct[1:]...)...) == nil {
		t.Error("other bytes with the same value were not detected")
	}
}
