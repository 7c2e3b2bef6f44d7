package resume

import (
	"fmt"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/internal/racetest"
)

// maxAttempts returns the maximum number of attempts of listThenWatch. Each attempt is a list and a
// watch.
func maxAttempts() int {
	if racetest.Enabled {
		return 150
	}
	return 1000
}

// A listedWatch is a list and the first events of a watch from the version of the list.
type listedWatch struct {
	list   listPage
	events []listwatch.Event
}

// listThenWatch lists the collection and then watches it from the version of the list,
// while another goroutine writes. Every write must appear either in the list or in the
// watch. No other collection is written, so the events of a watch must have consecutive
// versions.
func listThenWatch(e *harness.Env) {
	// before is the number of writes that race with each list. after is the number of writes that
	// race with the start of each watch.
	const before, after = 3, 3
	writes := make(chan struct{}, before+after)
	var writer sync.WaitGroup
	e.Put("x0")
	writer.Go(func() { writeOnRequest(e, writes) })
	stop := sync.OnceFunc(func() { close(writes); writer.Wait() })
	defer stop()

	var all []listedWatch
	list := newLister(e)
	for range harness.Repeat(50, maxAttempts()) {
		var t listedWatch
		harness.SendN(writes, before)
		t.list = list()
		harness.SendN(writes, after)
		s := e.Dial(harness.From(t.list.version))
		for range after {
			t.events = append(t.events, s.Next())
		}
		s.Close()
		all = append(all, t)
	}
	stop()
	model := &harness.Model{History: e.History, State: map[string]listwatch.Version{}}
	for i, t := range all {
		t.verify(e, i, model)
	}
}

// writeOnRequest writes or deletes one object for each value that it receives.
func writeOnRequest(e *harness.Env, writes <-chan struct{}) {
	n := 0
	for range writes {
		n++
		name := fmt.Sprintf("x%d", n%5)
		_, err := e.TryDelete(name)
		if n%7 != 3 || err != nil {
			_, err = e.TryPut(name)
		}
		if err != nil {
			e.Error(err)
		}
	}
}

// verify compares the list, and the list updated by the events, with the states that the
// model computes from the recorded writes.
func (l listedWatch) verify(e *harness.Env, attempt int, model *harness.Model) {
	e.Helper()
	model.Advance(l.list.version)
	state := l.list.items
	if diff := cmp.Diff(model.State, state); diff != "" {
		e.Fatalf("attempt %d: the list differs from the state at its version %d (-want +got):\n%s",
			attempt, l.list.version, diff)
	}
	for j, ev := range l.events {
		if want := l.list.version + listwatch.Version(j) + 1; ev.Version != want {
			e.Fatalf("attempt %d: list of version %d: event %d has version %d, want %d", attempt,
				l.list.version, j, ev.Version, want)
		}
		if state[ev.Object.Key.Name] = ev.Version; ev.Type == listwatch.Deleted {
			delete(state, ev.Object.Key.Name)
		}
	}
	last := l.list.version + listwatch.Version(len(l.events))
	model.Advance(last)
	if diff := cmp.Diff(model.State, state); diff != "" {
		e.Fatalf("attempt %d: the list and the events differ from the state at version %d (-want +got):\n%s", attempt,
			last, diff)
	}
}
