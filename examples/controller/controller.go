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
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/store"
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

// controller creates and deletes instances until each app has as many as it declares. It reads
// from informers, which costs the server nothing, and writes to the store.
type controller struct {
	apps      *informer.Informer[App]
	instances *informer.Informer[Instance]
	writes    *store.Typed[Instance]
	queue     *queue
}

// byApp is the name of the index of instances by app.
const byApp = "app"

func newController(apps, instances listwatch.Source, writes *store.Typed[Instance]) (*controller, error) {
	c := &controller{
		apps: &informer.Informer[App]{Source: apps}, instances: &informer.Informer[Instance]{Source: instances}, writes: writes, queue: newQueue(),
	}
	if err := c.instances.AddIndex(byApp, func(i *informer.Item[Instance]) []string { return []string{i.Value.App} }); err != nil {
		return nil, err
	}
	// Handlers only add the app's key to the queue. reconcile compares the current state
	// with the desired state, so it does not matter which event added the key.
	c.apps.Handle(informer.Handler[App]{
		OnAdd:    func(a App, _ bool) { c.queue.add(a.Key()) },
		OnUpdate: func(_, a App) { c.queue.add(a.Key()) },
		OnDelete: func(d informer.Deleted[App]) { c.queue.add(d.Key) },
	}, nil)
	c.instances.Handle(informer.Handler[Instance]{
		OnAdd:    func(i Instance, _ bool) { c.queue.add(listwatch.Key{Name: i.App}) },
		OnDelete: func(d informer.Deleted[Instance]) { c.queue.add(listwatch.Key{Name: d.Value.App}) },
	}, nil)
	return c, nil
}

// run reconciles until ctx ends.
func (c *controller) run(ctx context.Context, workers int) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { _ = c.apps.Run(ctx) })
	all.Go(func() { _ = c.instances.Run(ctx) })
	if c.apps.WaitForSync(ctx) != nil || c.instances.WaitForSync(ctx) != nil {
		return // WaitForSync fails only if ctx has ended
	}
	for range workers {
		all.Go(func() { c.work(ctx) })
	}
}

func (c *controller) work(ctx context.Context) {
	for {
		key, err := c.queue.next(ctx)
		if err != nil {
			return
		}
		if err = c.reconcile(ctx, key); err != nil {
			log.Printf("%s: %v", key, err)
		}
		c.queue.done(key, err)
	}
}

// reconcile creates and deletes instances until the app has the declared number. It is
// idempotent.
func (c *controller) reconcile(ctx context.Context, key listwatch.Key) error {
	app, _ := c.apps.Get(key) // if the app was deleted, app.Replicas is 0
	existing, err := c.instances.ByIndex(byApp, key.Name)
	if err != nil {
		return err
	}
	found := map[string]bool{}
	var written listwatch.Version
	for _, i := range existing {
		found[i.Name] = true
		if n := number(key.Name, i.Name); n < 0 || n >= app.Replicas {
			deleted, err := c.writes.Delete(ctx, i.Key())
			if err != nil && !errors.Is(err, listwatch.NotFound) {
				return err
			}
			written = max(written, deleted.Version())
		}
	}
	for n := range app.Replicas {
		name := fmt.Sprintf("%s-%d", key.Name, n)
		if found[name] {
			continue
		}
		created, err := c.writes.Create(ctx, Instance{Metadata: listwatch.Metadata{Name: name}, App: key.Name})
		if err != nil && !errors.Is(err, listwatch.AlreadyExists) {
			return err
		}
		written = max(written, created.Version())
	}
	// Wait until the informer has these writes, so that the next call for this app sees
	// them.
	return c.instances.WaitForVersion(ctx, written)
}

// number returns n if name is "app-n", and -1 otherwise.
func number(app, name string) int {
	text, ok := strings.CutPrefix(name, app+"-")
	n, err := strconv.Atoi(text)
	if !ok || err != nil || strconv.Itoa(n) != text {
		return -1
	}
	return n
}
