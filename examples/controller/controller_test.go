package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/crudserver"
	"github.com/listwatch/listwatch/listwatchtest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/typed"
)

// A getter reads single objects, as a Store does.
type getter interface {
	Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error)
}

// The instances must match the declared replicas, however often the informers lose their
// connections.
func TestInstancesMatchDeclaredReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		apps, instances := memory.New[App](), memory.New[Instance]()
		sources := []*listwatchtest.Source{listwatchtest.New(apps), listwatchtest.New(instances)}
		s, err := newScaler(sources[0], struct {
			listwatch.Source
			getter
			listwatch.Writer
		}{sources[1], instances.Store, instances.Store})
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
				_, err = apps.Delete(ctx, listwatch.Key{Name: name}, 0)
				delete(declared, name)
			default:
				_, err = apps.Update(ctx, listwatch.Key{Name: name},
					func(a *App) error { a.Replicas = replicas; return nil })
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

// injectFault injects a random fault into the source, ends its faults, or lets time pass.
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
func compare(t *testing.T, declared map[string]int,
	items func(context.Context, listwatch.Query) ([]Instance, listwatch.Version, error),
) {
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
		s, err := newScaler(nil, instances.Store)
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

// serve serves the store at a URL, and returns the client of that URL.
func serve(t *testing.T, s listwatch.Store) listwatch.Store {
	server := httptest.NewServer(&crudserver.Handler{Path: "/things", Collection: store.CollectionOf(s)})
	remote := &client.Remote{URL: server.URL + "/things"}
	t.Cleanup(func() {
		_ = remote.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return remote
}

// await follows the instances until there are n of them.
func await(t *testing.T, instances typed.Collection[Instance], n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	names := map[string]bool{}
	for e, err := range instances.Events(ctx, listwatch.Query{Bookmarks: true}) {
		switch {
		case err != nil:
			t.Fatalf("got %v with the instances %v, want %d", err, names, n)
		case e.Type == listwatch.Added:
			names[e.Object.Name] = true
		case e.Type == listwatch.Deleted:
			delete(names, e.Object.Name)
		}
		if len(names) == n && !e.Initial {
			return
		}
	}
}

func TestControllerTakesStoresAndURLs(t *testing.T) {
	for name, open := range map[string]func(*testing.T, listwatch.Store) listwatch.Store{
		"stores": func(_ *testing.T, s listwatch.Store) listwatch.Store { return s },
		"URLs":   serve,
	} {
		t.Run(name, func(t *testing.T) {
			apps := typed.Collection[App]{Store: open(t, memory.New[App]().Store)}
			instances := typed.Collection[Instance]{Store: open(t, memory.New[Instance]().Store)}
			s, err := newScaler(apps.Store, instances.Store)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { _ = s.run(ctx, 1); close(done) }() // returns after cancel
			defer func() { cancel(); <-done }()
			web, err := apps.Create(ctx, App{Metadata: listwatch.Metadata{Name: "web"}, Replicas: 3})
			if err != nil {
				t.Fatal(err)
			}
			await(t, instances, 3)
			if _, err := instances.Delete(ctx, listwatch.Key{Name: "web-1"}, 0); err != nil {
				t.Fatal(err)
			}
			await(t, instances, 3) // the controller replaces it
			if _, err := apps.Update(ctx, web.Key(), func(a *App) error { a.Replicas = 1; return nil }); err != nil {
				t.Fatal(err)
			}
			await(t, instances, 1)
		})
	}
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
	for name, want := range map[string]int{
		"web-0": 0, "web-12": 12, "web-01": -1, "web-1x": -1, "web--1": -1,
		"web-": -1, "web": -1, "webs-1": -1,
	} {
		if got := number("web", name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}
