package cases

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// many returns how many of something to have where n are wanted: the race detector needs no crowd.
func many(n int) int {
	if raced {
		return n / 5
	}
	return n
}

// together does n things at once and tells what goes wrong.
func (e *env) together(n int, do func(i int) error) {
	e.Helper()
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(failed) > 0 {
		e.Fatalf("%d of %d: %v", len(failed), n, failed[0])
	}
}

// receive is next for other goroutines than the case's.
func (s *stream) receive() (listwatch.Event, error) {
	w, err := s.Receive()
	if err != nil {
		return listwatch.Event{}, fmt.Errorf("got %w, want an event", err)
	}
	ev, err := w.Event()
	if err != nil {
		return ev, err
	}
	return s.atHome(ev), nil
}

// upTo reads events until a version has come, and returns them, shortly. It is for any goroutine.
func (s *stream) upTo(last listwatch.Version) (all []seen, err error) {
	for {
		e, err := s.receive()
		if err != nil {
			return all, fmt.Errorf("after %d events: %w", len(all), err)
		}
		all = append(all, seen{line(e), e.Version})
		if e.Version >= last {
			return all, nil
		}
	}
}

// differs tells where a watcher saw something else than it should; nil: nowhere.
func differs(want, got []seen) error {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return fmt.Errorf("event %d is %s at %d, want %s at %d", i, got[i].line, got[i].version, want[i].line, want[i].version)
		}
	}
	if len(want) != len(got) {
		return fmt.Errorf("got %d events, want %d", len(got), len(want))
	}
	return nil
}

// after returns what a watcher of everything sees of history from v on. The writes must have been made one after another.
func (d *data) after(v listwatch.Version) []seen {
	d.mu.Lock()
	defer d.mu.Unlock()
	state := map[string]map[string]string{}
	all := project(d.history, state, func(map[string]string) bool { return true })
	return slices.DeleteFunc(all, func(s seen) bool { return s.version <= v })
}

// mixed returns views of the server over all transports, in turn.
func (e *env) mixed() []*env {
	views := []*env{e}
	for _, w := range e.others() {
		views = append(views, e.over(w))
	}
	return views
}

// write changes one of a few objects. It is for any goroutine.
func (e *env) write(random *rand.Rand) (listwatch.Version, error) {
	name := string(rune('a' + random.IntN(4)))
	if random.IntN(4) == 0 {
		if v, err := e.tryDelete(name); !errors.Is(err, listwatch.NotFound) {
			return v, err
		}
	}
	return e.tryPut(name)
}

// seeded returns a source of random numbers, and tells its seed.
func (e *env) seeded() *rand.Rand {
	seed := rand.Uint64()
	e.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func thousandWatchers(e *env) {
	const writes = 100
	watchers := many(1000)
	start, views := e.put("start"), e.mixed()
	open := make([]*stream, watchers)
	e.together(watchers, func(i int) (err error) {
		open[i], err = views[i%len(views)].tryDial(from(start), transport.Request{})
		return err
	})
	random, written := e.seeded(), make(chan listwatch.Version, 1)
	go func() {
		defer close(written)
		for range writes - 1 {
			if _, err := e.write(random); err != nil {
				return
			}
		}
		if v, err := e.tryPut("last"); err == nil {
			written <- v
		}
	}()
	saw := make([][]seen, watchers)
	last := <-written
	if last == 0 {
		e.Fatal("a write failed")
	}
	e.together(watchers, func(i int) (err error) {
		saw[i], err = open[i].upTo(last)
		return err
	})
	want := e.after(start)
	e.together(watchers, func(i int) error { return differs(want, saw[i]) })
}

// A late watcher begins while there are writes: at a version that it knows, or with the state.
type late struct {
	*stream
	start listwatch.Version            // what it saw is what follows this
	state map[string]listwatch.Version // as it was told; nil: it asked for none
}

// join opens the i-th late watcher.
func (e *env) join(i int) (*late, error) {
	if i%2 == 0 {
		start := e.newest()
		s, err := e.tryDial(from(start), transport.Request{})
		return &late{stream: s, start: start}, err
	}
	s, err := e.tryDial(streamingList[1:], transport.Request{})
	if err != nil {
		return nil, err
	}
	l := &late{stream: s, state: map[string]listwatch.Version{}}
	for {
		ev, err := s.receive()
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
func (e *env) alongside(random *rand.Rand, atOnce int) (begin, stop func()) {
	begins, done := make(chan struct{}, atOnce), make(chan struct{})
	go func() {
		defer close(done)
		for range begins {
			if _, err := e.write(random); err != nil {
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

func subscribeRace(e *env) {
	const atOnce = 16
	watchers := many(200)
	e.put("start")
	begin, stop := e.alongside(e.seeded(), atOnce)
	open, places := make([]*late, watchers), make(chan struct{}, atOnce)
	e.together(watchers, func(i int) (err error) {
		places <- struct{}{}
		defer func() { <-places }()
		begin() // a write, while this one or others open
		open[i], err = e.join(i)
		return err
	})
	stop()
	last := e.put("last")
	e.together(watchers, func(i int) error { return open[i].check(last) })
}

// check reads up to the last version, and holds what came against the history.
func (l *late) check(last listwatch.Version) error {
	if l.state != nil {
		if got, want := fmt.Sprint(l.state), fmt.Sprint(l.stateAt(l.start)); got != want {
			return fmt.Errorf("the state at %d is %s, want %s", l.start, got, want)
		}
	}
	got, err := l.upTo(last)
	if err != nil {
		return err
	}
	// Who asked for the bookmark that ends the state may get others.
	got = slices.DeleteFunc(got, func(s seen) bool { return s.line == "BOOKMARK" })
	return differs(l.after(l.start), got)
}
