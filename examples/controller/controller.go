package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strconv"
	"strings"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/controller"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/typed"
	"github.com/listwatch/listwatch/workqueue"
)

// App declares how many instances should exist.
type App struct {
	listwatch.Metadata `json:"metadata"`
	Replicas           int `json:"replicas"`
}

// Instance is one instance of an app.
type Instance struct {
	listwatch.Metadata `json:"metadata"`
	App                string `json:"app"`
}

// A scaler creates and deletes instances until each app has the declared number. It reads from
// informers, so that reads send no requests, and writes to the store or the server of the
// instances.
type scaler struct {
	apps      *informer.Informer[App]
	instances *informer.Informer[Instance]
	writes    typed.Collection[Instance]
	queue     workqueue.Queue[listwatch.Key] // the keys of apps
}

// byApp is the name of the index of instances by app.
const byApp = "app"

// newScaler returns a scaler for collections in this process or behind a URL.
func newScaler(apps listwatch.Source, instances listwatch.Store) (*scaler, error) {
	s := &scaler{
		apps:      &informer.Informer[App]{Source: apps},
		instances: &informer.Informer[Instance]{Source: instances},
	}
	// A call sees the instances that earlier calls for its app have created and deleted.
	s.writes = typed.Collection[Instance]{Store: s.instances.Track(instances)}
	err := s.instances.AddIndex(byApp, func(i *informer.Item[Instance]) []string { return []string{i.Value.App} })
	if err != nil {
		return nil, err
	}
	// Reconcile the app of each instance that changes, because another program may delete
	// instances.
	controller.Enqueue(s.instances, &s.queue, func(i Instance) []listwatch.Key {
		return []listwatch.Key{{Name: i.App}}
	})
	return s, nil
}

// run reconciles until ctx ends or an informer fails.
func (s *scaler) run(ctx context.Context, workers int) error {
	ctx, stop := context.WithCancel(ctx)
	var informers sync.WaitGroup
	defer informers.Wait()
	defer stop()
	informers.Go(func() { _ = s.apps.Run(ctx) })
	informers.Go(func() { _ = s.instances.Run(ctx) })
	if err := s.instances.WaitForSync(ctx); err != nil {
		return err
	}
	return controller.Reconcile(ctx, s.apps, s.reconcile, controller.Options[App]{
		Concurrency: workers,
		Queue:       &s.queue,
		Called: func(c controller.Call) {
			if c.Err != nil {
				log.Printf("%s: %v; retrying in %v", c.Key, c.Err, c.Retry)
			}
		},
	})
}

// reconcile creates and deletes instances until the app has the declared number. It is
// idempotent.
func (s *scaler) reconcile(ctx context.Context, key listwatch.Key) error {
	app, _ := s.apps.Get(key) // if the app was deleted, app.Replicas is 0
	existing, err := s.instances.ByIndex(byApp, key.Name)
	if err != nil {
		return err
	}
	found := map[string]bool{}
	for _, i := range existing {
		found[i.Name] = true
		if n := number(key.Name, i.Name); n < 0 || n >= app.Replicas {
			if _, err := s.writes.Delete(ctx, i.Key(), i.Version()); err != nil && !errors.Is(err, listwatch.NotFound) {
				return err
			}
		}
	}
	for n := range app.Replicas {
		name := fmt.Sprintf("%s-%d", key.Name, n)
		if found[name] {
			continue
		}
		_, err := s.writes.Create(ctx, Instance{Metadata: listwatch.Metadata{Name: name}, App: key.Name})
		if err != nil && !errors.Is(err, listwatch.AlreadyExists) {
			return err
		}
	}
	return nil
}

// number returns n if name is app followed by "-n", and -1 otherwise.
func number(app, name string) int {
	text, ok := strings.CutPrefix(name, app+"-")
	n, err := strconv.Atoi(text)
	if !ok || err != nil || strconv.Itoa(n) != text {
		return -1
	}
	return n
}
