package cases

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/transport"
)

// closeDuringSend closes watches while they are sent a history and what is written meanwhile.
func closeDuringSend(e *env) {
	const atOnce, history = 8, 100
	watches := many(200)
	random := e.seeded()
	start := e.put("start")
	for range history {
		if _, err := e.write(random); err != nil {
			e.Fatal(err)
		}
	}
	want, seed := e.after(start), random.Uint64()
	begin, stop := e.alongside(random, atOnce)
	e.together(atOnce, func(i int) error {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		for range watches / atOnce {
			begin()
			if err := e.closeAmidst(start, want[:random.IntN(len(want))], random.IntN(2) == 0); err != nil {
				return err
			}
		}
		return nil
	})
	stop()
	got, err := e.dial(from(start)).upTo(e.put("last"))
	if err == nil {
		err = differs(e.after(start), got)
	}
	if err != nil {
		e.Errorf("a watch after %d that were closed: %v", watches, err)
	}
}

// closeAmidst opens a watch, reads some events, which are to be those wanted, and closes it, while somebody reads or not.
func (e *env) closeAmidst(start listwatch.Version, want []seen, reading bool) error {
	s, err := e.tryDial(from(start), transport.Request{})
	if err != nil {
		return err
	}
	for i, want := range want {
		ev, err := s.receive()
		if err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		if err := differs([]seen{want}, []seen{{line(ev), ev.Version}}); err != nil {
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
	late, cancel := context.WithTimeout(context.Background(), e.patience())
	defer cancel()
	select {
	case <-ended:
		return err
	case <-late.Done():
		return fmt.Errorf("whoever reads a watch that is closed does not get to know")
	}
}

func stopIdempotent(e *env) {
	start := e.put("a")
	e.closesForGood("before it was read", e.follow(e.remote(e.site), start))

	w := e.follow(e.remote(e.site), start)
	e.put("a")
	if _, err := e.nextOf(w); err != nil {
		e.Fatal(err)
	}
	e.put("a")
	e.closesForGood("by its reader", w)

	w = e.follow(e.remote(e.site), e.newest())
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() { w.Close() })
	}
	e.wantOver("by others, while its reader waits", w)
	others.Wait()
	e.closesForGood("by others, before", w)

	ctx, cancel := context.WithCancel(context.Background())
	w, err := e.remote(e.site).Watch(ctx, listwatch.Query{Start: listwatch.At, Version: e.newest()})
	if err != nil {
		e.Fatal(err)
	}
	cancel()
	e.closesForGood("after the context of the call", w)

	s := e.dial(from(e.newest()))
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
func (e *env) closesForGood(when string, w listwatch.Watcher) {
	e.Helper()
	for range 2 {
		if err := w.Close(); err != nil {
			e.Errorf("closed %s: got %v, want nil", when, err)
		}
		e.wantOver(when, w)
	}
}

func (e *env) wantOver(when string, w listwatch.Watcher) {
	e.Helper()
	if got, err := e.nextOf(w); err != io.EOF {
		e.Errorf("closed %s: got %s, %v behind that; want the end", when, got.Type, err)
	}
}
