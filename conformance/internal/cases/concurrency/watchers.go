package concurrency

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/transport"
)

// allVariants returns e and an Env for each other variant of the same server.
func allVariants(e *harness.Env) []*harness.Env {
	envs := []*harness.Env{e}
	for _, w := range e.OtherVariants() {
		envs = append(envs, e.WithVariant(w))
	}
	return envs
}

// writeRandom puts or deletes one of four objects at random. It may be called on any goroutine.
func writeRandom(e *harness.Env, random *rand.Rand) (listwatch.Version, error) {
	name := string(rune('a' + random.IntN(4)))
	if random.IntN(4) == 0 {
		if v, err := e.TryDelete(name); !errors.Is(err, listwatch.NotFound) {
			return v, err
		}
	}
	return e.TryPut(name)
}

func thousandWatchers(e *harness.Env) {
	const writes = 50
	watchers := harness.Scaled(1000)
	start, envs := e.Put("start"), allVariants(e)
	watches := make([]*harness.Watch, watchers)
	e.Concurrently(watchers, func(i int) (err error) {
		watches[i], err = envs[i%len(envs)].TryDial(harness.From(start), transport.Request{})
		return err
	})
	random, written := e.Random(), make(chan listwatch.Version, 1)
	go func() {
		defer close(written)
		for range writes - 1 {
			if _, err := writeRandom(e, random); err != nil {
				return
			}
		}
		if v, err := e.TryPut("last"); err == nil {
			written <- v
		}
	}()
	seen := make([][]harness.SeenEvent, watchers)
	last := <-written
	if last == 0 {
		e.Fatal("a write failed")
	}
	e.Concurrently(watchers, func(i int) (err error) {
		seen[i], err = watches[i].ReadThrough(last)
		return err
	})
	want := e.EventsAfter(start)
	e.Concurrently(watchers, func(i int) error { return harness.Diff(want, seen[i]) })
}

// A lateWatch starts during writes, either at a known version or with initial events.
type lateWatch struct {
	*harness.Watch
	// start is the version after which the watch sees every event.
	start listwatch.Version
	// initial maps the names of the objects in the initial events to their versions. It is nil if
	// the watch did not request initial events.
	initial map[string]listwatch.Version
}

// openLateWatch opens the i-th late watch. If i is even, the watch starts at the newest version,
// otherwise it starts with initial events.
func openLateWatch(e *harness.Env, i int) (*lateWatch, error) {
	if i%2 == 0 {
		start := e.Newest()
		s, err := e.TryDial(harness.From(start), transport.Request{})
		return &lateWatch{Watch: s, start: start}, err
	}
	s, err := e.TryDial(harness.InitialEvents[1:], transport.Request{})
	if err != nil {
		return nil, err
	}
	l := &lateWatch{Watch: s, initial: map[string]listwatch.Version{}}
	for {
		ev, err := s.ReceiveEvent()
		switch {
		case err != nil:
			return nil, fmt.Errorf("wait for the bookmark that ends the initial events: %w", err)
		case ev.Type == listwatch.Synced:
			l.start = ev.Version
			return l, nil
		}
		l.initial[ev.Object.Key.Name] = ev.Version
	}
}

// writeOnRequest starts a goroutine that changes an object for each call of write. A call blocks
// only while atOnce changes are queued. stop waits for the last change.
func writeOnRequest(e *harness.Env, random *rand.Rand, atOnce int) (write, stop func()) {
	requests, done := make(chan struct{}, atOnce), make(chan struct{})
	go func() {
		defer close(done)
		for range requests {
			if _, err := writeRandom(e, random); err != nil {
				e.Errorf("write: %v", err)
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		close(requests)
		<-done
	})
	e.Cleanup(stop)
	return func() { requests <- struct{}{} }, stop
}

func subscribeRace(e *harness.Env) {
	const atOnce = 16
	watchers := harness.Scaled(200)
	e.Put("start")
	write, stop := writeOnRequest(e, e.Random(), atOnce)
	watches, slots := make([]*lateWatch, watchers), make(chan struct{}, atOnce)
	var failed atomic.Bool
	e.Concurrently(watchers, func(i int) (err error) {
		slots <- struct{}{}
		defer func() { <-slots }()
		if failed.Load() {
			return nil // otherwise all timeouts together exceed the timeout of the case
		}
		write() // a write that races with openLateWatch
		if watches[i], err = openLateWatch(e, i); err != nil {
			failed.Store(true)
		}
		return err
	})
	stop()
	last := e.Put("last")
	e.Concurrently(watchers, func(i int) error { return watches[i].check(last) })
}

// check reads up to the last version and compares the events with the history.
func (l *lateWatch) check(last listwatch.Version) error {
	if l.initial != nil {
		if got, want := fmt.Sprint(l.initial), fmt.Sprint(l.StateAt(l.start)); got != want {
			return fmt.Errorf("initial events at version %d: got %s, want %s", l.start, got, want)
		}
	}
	got, err := l.ReadThrough(last)
	if err != nil {
		return err
	}
	// A watch with initial events requests bookmarks, so the server may send some between the
	// changes. Ignore them.
	got = slices.DeleteFunc(got, func(s harness.SeenEvent) bool { return s.Line == "BOOKMARK" })
	return harness.Diff(l.EventsAfter(l.start), got)
}
