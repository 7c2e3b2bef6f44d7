package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/listwatchtest"
	"github.com/listwatch/listwatch/store/memory"
)

// The instances must match the declared replicas, whatever happens to the connections of the
// informers.
func TestInstancesMatchDeclaredReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		apps, instances := memory.New[App](), memory.New[Instance]()
		sources := []*listwatchtest.Source{listwatchtest.New(apps), listwatchtest.New(instances)}
		s, err := newScaler(sources[0], sources[1], instances)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.run(ctx, 3) }()
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
			injectFault(t, sources[rand.IntN(len(sources))])
		}
		for _, source := range sources {
			source.Fail(nil)
			source.Delay(0)
		}
		time.Sleep(time.Hour) // the longest delay before a retry is 17 minutes
		compare(t, declared, instances.Items)
		cancel()
		if err := <-done; err != context.Canceled {
			t.Errorf("run returned %v, want the error of its context", err)
		}
	})
}

// injectFault makes the source fail in a random way, or ends its failures.
func injectFault(t *testing.T, source *listwatchtest.Source) {
	switch rand.IntN(20) {
	case 0:
		source.Cut(nil)
	case 1:
		source.Cut(io.EOF)
	case 2:
		if err := source.Expire(); err != nil {
			t.Fatal(err)
		}
	case 3:
		source.Fail(errors.New("the server is down"))
	case 4:
		source.Fail(nil)
	case 5:
		source.Delay(rand.N(time.Second))
	case 6:
		<-time.After(rand.N(time.Minute))
	case 7, 8, 9:
		synctest.Wait()
	}
}

// compare compares the numbers of instances with the declared numbers.
func compare(t *testing.T, declared map[string]int, items func(context.Context, listwatch.Query) ([]Instance, listwatch.Version, error)) {
	t.Helper()
	instances, _, err := items(t.Context(), listwatch.Query{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, i := range instances {
		got[i.App]++
	}
	for name, n := range declared {
		if got[name] != n {
			t.Errorf("%s has %d instances, want %d", name, got[name], n)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("instances of deleted apps remain: %v", got)
	}
}

func TestRunReturnsWhenAnInformerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		instances := memory.New[Instance]()
		s, err := newScaler(nil, instances, instances)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- s.run(ctx, 1) }()
		select {
		case err := <-done:
			if !errors.Is(err, listwatch.Invalid) {
				t.Errorf("run returned %v, want an error of code Invalid, because the apps have no Source", err)
			}
		case <-time.After(time.Hour):
			t.Error("run did not return although the informer of the apps had failed")
		}
	})
}

func TestDeletedInstanceIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		apps, instances := memory.New[App](), memory.New[Instance]()
		s, err := newScaler(apps, instances, instances)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { _ = s.run(ctx, 1); close(done) }()
		if _, err := apps.Create(ctx, App{Metadata: listwatch.Metadata{Name: "web"}, Replicas: 2}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := instances.Delete(ctx, listwatch.Key{Name: "web-1"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		compare(t, map[string]int{"web": 2}, instances.Items)
		cancel()
		<-done
	})
}

func TestDemoPrintsWhatTheControllerDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var out bytes.Buffer
		if err := demo(ctx, &out); err != context.DeadlineExceeded {
			t.Errorf("demo returned %v, want the error of its context", err)
		}
		const want = `started web-0
started web-1
started web-2
started web-3
started web-4
stopped web-1
stopped web-2
stopped web-3
stopped web-4
`
		if out.String() != want {
			t.Errorf("the program printed\n%s\nwant\n%s", &out, want)
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
