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

// An App is what is wanted: so many instances.
type App struct {
	listwatch.Metadata `json:"metadata"`
	Replicas           int `json:"replicas"`
}

// An Instance is what is there.
type Instance struct {
	listwatch.Metadata `json:"metadata"`
	App                string `json:"app"`
}

// A controller makes what is there into what is wanted. It reads from informers, which cost the server nothing, and writes to the store.
type controller struct {
	apps      *informer.Informer[App]
	instances *informer.Informer[Instance]
	writes    *store.Typed[Instance]
	queue     *queue
}

// byApp is an index of instances.
const byApp = "app"

func newController(apps, instances listwatch.Source, writes *store.Typed[Instance]) (*controller, error) {
	c := &controller{
		apps: &informer.Informer[App]{Source: apps}, instances: &informer.Informer[Instance]{Source: instances}, writes: writes, queue: newQueue(),
	}
	if err := c.instances.AddIndex(byApp, func(i *informer.Item[Instance]) []string { return []string{i.Value.App} }); err != nil {
		return nil, err
	}
	// Handlers only say which app has to be looked at: reconcile looks at what is there, not at what has happened.
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

// run works until ctx ends.
func (c *controller) run(ctx context.Context, workers int) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { _ = c.apps.Run(ctx) })
	all.Go(func() { _ = c.instances.Run(ctx) })
	if c.apps.WaitForSync(ctx) != nil || c.instances.WaitForSync(ctx) != nil {
		return // ctx has ended
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

// reconcile makes as many instances as the app wants. It may be called at any time, and again.
func (c *controller) reconcile(ctx context.Context, key listwatch.Key) error {
	app, _ := c.apps.Get(key) // one that is gone wants none
	there, err := c.instances.ByIndex(byApp, key.Name)
	if err != nil {
		return err
	}
	has := map[string]bool{}
	var wrote listwatch.Version
	for _, i := range there {
		has[i.Name] = true
		if n := number(key.Name, i.Name); n < 0 || n >= app.Replicas {
			gone, err := c.writes.Delete(ctx, i.Key())
			if err != nil && !errors.Is(err, listwatch.NotFound) {
				return err
			}
			wrote = max(wrote, gone.Version())
		}
	}
	for n := range app.Replicas {
		name := fmt.Sprintf("%s-%d", key.Name, n)
		if has[name] {
			continue
		}
		made, err := c.writes.Create(ctx, Instance{Metadata: listwatch.Metadata{Name: name}, App: key.Name})
		if err != nil && !errors.Is(err, listwatch.AlreadyExists) {
			return err
		}
		wrote = max(wrote, made.Version())
	}
	// The next look at this app is to see what this one wrote.
	return c.instances.WaitForVersion(ctx, wrote)
}

// number returns n where name is "app-n", and -1 where it isn't.
func number(app, name string) int {
	text, ok := strings.CutPrefix(name, app+"-")
	n, err := strconv.Atoi(text)
	if !ok || err != nil || strconv.Itoa(n) != text {
		return -1
	}
	return n
}
