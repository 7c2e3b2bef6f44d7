package concurrency

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/harness"
	"github.com/listwatch/listwatch/transport"
)

// closeDuringSend closes watches while they are sent a history and what is written meanwhile.
func closeDuringSend(e *harness.Env) {
	const atOnce, history = 8, 100
	watches := harness.Scaled(200)
	random := e.Random()
	start := e.Put("start")
	for range history {
		if _, err := write(e, random); err != nil {
			e.Fatal(err)
		}
	}
	want, seed := e.EventsAfter(start), random.Uint64()
	begin, stop := alongside(e, random, atOnce)
	e.Concurrently(atOnce, func(i int) error {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		for range watches / atOnce {
			begin()
			if err := closeAmidst(e, start, want[:random.IntN(len(want))], random.IntN(2) == 0); err != nil {
				return err
			}
		}
		return nil
	})
	stop()
	got, err := e.Dial(harness.From(start)).ReadThrough(e.Put("last"))
	if err == nil {
		err = harness.Diff(e.EventsAfter(start), got)
	}
	if err != nil {
		e.Errorf("a watch after %d that were closed: %v", watches, err)
	}
}

// closeAmidst opens a watch, reads some events, which are to be those wanted, and closes it, while somebody reads or not.
func closeAmidst(e *harness.Env, start listwatch.Version, want []harness.Seen, reading bool) error {
	s, err := e.TryDial(harness.From(start), transport.Request{})
	if err != nil {
		return err
	}
	for i, want := range want {
		ev, err := s.ReceiveEvent()
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		if err := harness.Diff([]harness.Seen{want}, []harness.Seen{{Line: harness.Line(ev), Version: ev.Version}}); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
	}
	if !reading {
		return s.Close()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for err := error(nil); err == nil; {
			_, err = s.Receive()
		}
	}()
	err = s.Close()
	late, cancel := context.WithTimeout(context.Background(), e.Patience())
	defer cancel()
	select {
	case <-ended:
		return err
	case <-late.Done():
		return fmt.Errorf("whoever reads a watch that is closed does not get to know")
	}
}

func stopIdempotent(e *harness.Env) {
	start := e.Put("a")
	closesForGood(e, "before it was read", e.Follow(e.Remote(e.Route), start))

	w := e.Follow(e.Remote(e.Route), start)
	e.Put("a")
	if _, err := e.NextOf(w); err != nil {
		e.Fatal(err)
	}
	e.Put("a")
	closesForGood(e, "by its reader", w)

	w = e.Follow(e.Remote(e.Route), e.Newest())
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() { w.Close() })
	}
	wantOver(e, "by others, while its reader waits", w)
	others.Wait()
	closesForGood(e, "by others, before", w)

	ctx, cancel := context.WithCancel(context.Background())
	w, err := e.Remote(e.Route).Watch(ctx, listwatch.Query{Start: listwatch.At, Version: e.Newest()})
	if err != nil {
		e.Fatal(err)
	}
	cancel()
	closesForGood(e, "after the context of the call", w)

	s := e.Dial(harness.From(e.Newest()))
	for range 3 {
		if err := s.Close(); err != nil {
			e.Errorf("got %v of a receiver's Close, want nil", err)
		}
		if got, err := s.Receive(); err == nil {
			e.Errorf("got %s from a receiver that is closed", got.Type)
		}
	}
}

// closesForGood closes a watch twice.
func closesForGood(e *harness.Env, when string, w listwatch.Watcher) {
	e.Helper()
	for range 2 {
		if err := w.Close(); err != nil {
			e.Errorf("closed %s: got %v, want nil", when, err)
		}
		wantOver(e, when, w)
	}
}

func wantOver(e *harness.Env, when string, w listwatch.Watcher) {
	e.Helper()
	if got, err := e.NextOf(w); err != io.EOF {
		e.Errorf("closed %s: got %s, %v behind that; want the end", when, got.Type, err)
	}
}
