package concurrency

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/transport"
)

// mixed returns views of the server over all transports, in turn.
func mixed(e *harness.Env) []*harness.Env {
	views := []*harness.Env{e}
	for _, w := range e.OtherVariants() {
		views = append(views, e.WithVariant(w))
	}
	return views
}

// write changes one of a few objects. It is for any goroutine.
func write(e *harness.Env, random *rand.Rand) (listwatch.Version, error) {
	name := string(rune('a' + random.IntN(4)))
	if random.IntN(4) == 0 {
		if v, err := e.TryDelete(name); !errors.Is(err, listwatch.NotFound) {
			return v, err
		}
	}
	return e.TryPut(name)
}

func thousandWatchers(e *harness.Env) {
	const writes = 100
	watchers := harness.Scaled(1000)
	start, views := e.Put("start"), mixed(e)
	open := make([]*harness.Watch, watchers)
	e.Concurrently(watchers, func(i int) (err error) {
		open[i], err = views[i%len(views)].TryDial(harness.From(start), transport.Request{})
		return err
	})
	random, written := e.Random(), make(chan listwatch.Version, 1)
	go func() {
		defer close(written)
		for range writes - 1 {
			if _, err := write(e, random); err != nil {
				return
			}
		}
		if v, err := e.TryPut("last"); err == nil {
			written <- v
		}
	}()
	saw := make([][]harness.Seen, watchers)
	last := <-written
	if last == 0 {
		e.Fatal("a write failed")
	}
	e.Concurrently(watchers, func(i int) (err error) {
		saw[i], err = open[i].ReadThrough(last)
		return err
	})
	want := e.EventsAfter(start)
	e.Concurrently(watchers, func(i int) error { return harness.Diff(want, saw[i]) })
}

// A late watcher begins while there are writes: at a version that it knows, or with the state.
type late struct {
	*harness.Watch
	start listwatch.Version            // what it saw is what follows this
	state map[string]listwatch.Version // as it was told; nil: it asked for none
}

// join opens the i-th late watcher.
func join(e *harness.Env, i int) (*late, error) {
	if i%2 == 0 {
		start := e.Newest()
		s, err := e.TryDial(harness.From(start), transport.Request{})
		return &late{Watch: s, start: start}, err
	}
	s, err := e.TryDial(harness.InitialEvents[1:], transport.Request{})
	if err != nil {
		return nil, err
	}
	l := &late{Watch: s, state: map[string]listwatch.Version{}}
	for {
		ev, err := s.ReceiveEvent()
		switch {
		case err != nil:
			return nil, err
		case ev.Type == listwatch.Synced:
			l.start = ev.Version
			return l, nil
		}
		l.state[ev.Object.Key.Name] = ev.Version
	}
}

// alongside returns what has a write made beside everything else, whenever it is called, and what waits for the last of them.
func alongside(e *harness.Env, random *rand.Rand, atOnce int) (begin, stop func()) {
	begins, done := make(chan struct{}, atOnce), make(chan struct{})
	go func() {
		defer close(done)
		for range begins {
			if _, err := write(e, random); err != nil {
				e.Errorf("write: %v", err)
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		close(begins)
		<-done
	})
	e.Cleanup(stop)
	return func() { begins <- struct{}{} }, stop
}

func subscribeRace(e *harness.Env) {
	const atOnce = 16
	watchers := harness.Scaled(200)
	e.Put("start")
	begin, stop := alongside(e, e.Random(), atOnce)
	open, places := make([]*late, watchers), make(chan struct{}, atOnce)
	e.Concurrently(watchers, func(i int) (err error) {
		places <- struct{}{}
		defer func() { <-places }()
		begin() // a write, while this one or others open
		open[i], err = join(e, i)
		return err
	})
	stop()
	last := e.Put("last")
	e.Concurrently(watchers, func(i int) error { return open[i].check(last) })
}

// check reads up to the last version, and holds what came against the history.
func (l *late) check(last listwatch.Version) error {
	if l.state != nil {
		if got, want := fmt.Sprint(l.state), fmt.Sprint(l.StateAt(l.start)); got != want {
			return fmt.Errorf("the state at %d is %s, want %s", l.start, got, want)
		}
	}
	got, err := l.ReadThrough(last)
	if err != nil {
		return err
	}
	// Who asked for the bookmark that ends the state may get others.
	got = slices.DeleteFunc(got, func(s harness.Seen) bool { return s.Line == "BOOKMARK" })
	return harness.Diff(l.EventsAfter(l.start), got)
}
