package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
)

func TestWhatIsThereBecomesWhatIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		apps, instances := memory.New[App](), memory.New[Instance]()
		c, err := newController(apps, instances, instances)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.run(ctx, 3)
		}()
		wanted := map[string]int{}
		for range 200 {
			name, replicas := fmt.Sprint("app", rand.IntN(5)), rand.IntN(6)
			switch _, exists := wanted[name]; {
			case !exists:
				_, err = apps.Create(ctx, App{Metadata: listwatch.Metadata{Name: name}, Replicas: replicas})
				wanted[name] = replicas
			case replicas == 0:
				_, err = apps.Delete(ctx, listwatch.Key{Name: name})
				delete(wanted, name)
			default:
				_, err = apps.Update(ctx, listwatch.Key{Name: name}, func(a *App) error { a.Replicas = replicas; return nil })
				wanted[name] = replicas
			}
			if err != nil {
				t.Fatal(err)
			}
			if rand.IntN(4) == 0 {
				synctest.Wait()
			}
		}
		time.Sleep(time.Minute)
		there := map[string]int{}
		items, _, err := instances.Items(ctx, listwatch.Query{})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			there[i.App]++
		}
		for name, n := range wanted {
			if there[name] != n {
				t.Errorf("%s has %d instances, want %d", name, there[name], n)
			}
			delete(there, name)
		}
		if delete(there, ""); len(there) > 0 {
			t.Errorf("there are instances of apps that are gone: %v", there)
		}
		cancel()
		<-ended
	})
}

func TestAKeyWaitsOnceIsWorkedOnOnceAndComesBackLaterAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, a := newQueue(), listwatch.Key{Name: "a"}
		take := func() time.Duration {
			start := time.Now()
			if key, err := q.next(t.Context()); err != nil || key != a {
				t.Fatalf("got %v, %v; want a", key, err)
			}
			return time.Since(start)
		}
		none := func(when string) {
			if key, ok := q.take(); ok {
				t.Errorf("%s: got %v, want nothing", when, key)
			}
		}
		q.add(a)
		q.add(a)
		take()
		none("added twice")
		q.add(a)
		none("while it is worked on")
		q.done(a, nil)
		take()
		var waits []time.Duration
		for range 20 {
			q.done(a, errors.New("no"))
			waits = append(waits, take())
		}
		if waits[0] != firstRetry || waits[1] != 2*firstRetry || waits[19] != lastRetry {
			t.Errorf("after failures it came back after %v, want %v, doubled, to %v", waits, firstRetry, lastRetry)
		}
		q.done(a, nil)
		none("after a success")
		q.add(a)
		take()
		q.done(a, errors.New("no"))
		if wait := take(); wait != firstRetry {
			t.Errorf("after a success and a failure it came back after %v, want %v", wait, firstRetry)
		}
	})
}

func TestOnlyTheNamesThatItGivesAreNumbered(t *testing.T) {
	for name, want := range map[string]int{"web-0": 0, "web-12": 12, "web-01": -1, "web-1x": -1, "web--1": -1, "web-": -1, "web": -1, "webs-1": -1} {
		if got := number("web", name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}
