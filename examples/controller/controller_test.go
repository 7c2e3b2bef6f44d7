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

func TestInstancesMatchDeclaredReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		apps, instances := memory.New[App](), memory.New[Instance]()
		c, err := newController(apps, instances, instances)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.run(ctx, 3)
		}()
		declared := map[string]int{}
		for range 200 {
			name, replicas := fmt.Sprint("app", rand.IntN(5)), rand.IntN(6)
			switch _, exists := declared[name]; {
			case !exists:
				_, err = apps.Create(ctx, App{Metadata: listwatch.Metadata{Name: name}, Replicas: replicas})
				declared[name] = replicas
			case replicas == 0:
				_, err = apps.Delete(ctx, listwatch.Key{Name: name})
				delete(declared, name)
			default:
				_, err = apps.Update(ctx, listwatch.Key{Name: name}, func(a *App) error { a.Replicas = replicas; return nil })
				declared[name] = replicas
			}
			if err != nil {
				t.Fatal(err)
			}
			if rand.IntN(4) == 0 {
				synctest.Wait()
			}
		}
		time.Sleep(time.Minute)
		got := map[string]int{}
		items, _, err := instances.Items(ctx, listwatch.Query{})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			got[i.App]++
		}
		for name, n := range declared {
			if got[name] != n {
				t.Errorf("%s has %d instances, want %d", name, got[name], n)
			}
			delete(got, name)
		}
		if delete(got, ""); len(got) > 0 {
			t.Errorf("instances of deleted apps remain: %v", got)
		}
		cancel()
		<-done
	})
}

func TestQueueDeduplicatesAndDelaysRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, a := newQueue(), listwatch.Key{Name: "a"}
		take := func() time.Duration {
			start := time.Now()
			if key, err := q.next(t.Context()); err != nil || key != a {
				t.Fatalf("next returned %v, %v; want a", key, err)
			}
			return time.Since(start)
		}
		requireEmpty := func(when string) {
			if key, ok := q.take(); ok {
				t.Errorf("%s: take returned %v, want no key", when, key)
			}
		}
		q.add(a)
		q.add(a)
		take()
		requireEmpty("added twice")
		q.add(a)
		requireEmpty("while it is worked on")
		q.done(a, nil)
		take()
		var delays []time.Duration
		for range 20 {
			q.done(a, errors.New("no"))
			delays = append(delays, take())
		}
		if delays[0] != firstRetry || delays[1] != 2*firstRetry || delays[19] != lastRetry {
			t.Errorf("the delays after failures are %v, want %v, doubled each time up to %v", delays, firstRetry, lastRetry)
		}
		q.done(a, nil)
		requireEmpty("after a success")
		q.add(a)
		take()
		q.done(a, errors.New("no"))
		if delay := take(); delay != firstRetry {
			t.Errorf("the delay after a success and a failure is %v, want %v", delay, firstRetry)
		}
	})
}

func TestNumberOfInstanceName(t *testing.T) {
	for name, want := range map[string]int{"web-0": 0, "web-12": 12, "web-01": -1, "web-1x": -1, "web--1": -1, "web-": -1, "web": -1, "webs-1": -1} {
		if got := number("web", name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}
