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

// closeDuringSend closes watches while the server sends them the history and concurrent writes.
func closeDuringSend(e *harness.Env) {
	const atOnce, history = 8, 100
	watches := harness.Scaled(200)
	random := e.Random()
	start := e.Put("start")
	for range history {
		if _, err := writeRandom(e, random); err != nil {
			e.Fatal(err)
		}
	}
	want, seed := e.EventsAfter(start), random.Uint64()
	write, stop := writeOnRequest(e, random, atOnce)
	e.Concurrently(atOnce, func(i int) error {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		for range watches / atOnce {
			write()
			if err := readAndClose(e, start, want[:random.IntN(len(want))], random.IntN(2) == 0); err != nil {
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
		e.Errorf("a watch opened after %d others were closed: %v", watches, err)
	}
}

// readAndClose opens a watch, compares its first events with want, and closes it. If reading is
// true, a goroutine reads events while readAndClose closes the watch.
func readAndClose(e *harness.Env, start listwatch.Version, want []harness.SeenEvent, reading bool) error {
	s, err := e.TryDial(harness.From(start), transport.Request{})
	if err != nil {
		return err
	}
	for i, want := range want {
		ev, err := s.ReceiveEvent()
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		if err := harness.Diff([]harness.SeenEvent{want},
			[]harness.SeenEvent{{Line: harness.EventLine(ev), Version: ev.Version}}); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
	}
	if !reading {
		return s.Close()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for err := error(nil); err == nil; {
			_, err = s.Receive()
		}
	}()
	err = s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), e.Patience())
	defer cancel()
	select {
	case <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("a pending read did not return after the watch was closed")
	}
}

func stopIdempotent(e *harness.Env) {
	start := e.Put("a")
	wantClosed(e, "before the first read", e.Follow(e.Remote(e.Route), start))

	w := e.Follow(e.Remote(e.Route), start)
	e.Put("a")
	if _, err := e.NextOf(w); err != nil {
		e.Fatal(err)
	}
	e.Put("a")
	wantClosed(e, "by its reader", w)

	w = e.Follow(e.Remote(e.Route), e.Newest())
	var closers sync.WaitGroup
	for range 4 {
		closers.Go(func() { w.Close() })
	}
	wantEOF(e, "by other goroutines during a read", w)
	closers.Wait()
	wantClosed(e, "by other goroutines before the read", w)

	ctx, cancel := context.WithCancel(context.Background())
	w, err := e.Remote(e.Route).Watch(ctx, listwatch.Query{Start: listwatch.StartAt, Version: e.Newest()})
	if err != nil {
		e.Fatal(err)
	}
	cancel()
	wantClosed(e, "after the context of Watch was canceled", w)

	s := e.Dial(harness.From(e.Newest()))
	for range 3 {
		if err := s.Close(); err != nil {
			e.Errorf("Close of a receiver: got %v, want nil", err)
		}
		if got, err := s.Receive(); err == nil {
			e.Errorf("got %s from a closed receiver, want an error", got.Type)
		}
	}
}

// wantClosed closes a watch twice and checks that each following read returns io.EOF.
func wantClosed(e *harness.Env, when string, w listwatch.Watcher) {
	e.Helper()
	for range 2 {
		if err := w.Close(); err != nil {
			e.Errorf("closed %s: got %v, want nil", when, err)
		}
		wantEOF(e, when, w)
	}
}

func wantEOF(e *harness.Env, when string, w listwatch.Watcher) {
	e.Helper()
	if got, err := e.NextOf(w); err != io.EOF {
		e.Errorf("closed %s: the next read returned %s, want a clean end", when, harness.Got(got, err))
	}
}
