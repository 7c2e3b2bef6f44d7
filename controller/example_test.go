package controller_test

import (
	"context"
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/controller"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/workqueue"
)

func ExampleReconcile() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := memory.New[App]()
	if _, err := store.Create(ctx, App{Metadata: listwatch.Metadata{Name: "web"}, Team: "ada"}); err != nil {
		fmt.Println(err)
		return
	}
	apps := &informer.Informer[App]{Source: store}
	go apps.Run(ctx)
	err := controller.Reconcile(ctx, apps, func(ctx context.Context, key listwatch.Key) error {
		app, exists := apps.Get(key)
		if !exists {
			fmt.Println("stop", key)
			cancel()
			return nil
		}
		fmt.Println("start", key, "for", app.Team)
		_, err := store.Delete(ctx, key, 0)
		return err
	}, controller.Options[App]{Concurrency: 2})
	fmt.Println(err)
	// Output:
	// start web for ada
	// stop web
	// context canceled
}

func ExampleEnqueue() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := memory.New[App]()
	instances := &informer.Informer[App]{Source: store}
	queue := &workqueue.Queue[listwatch.Key]{} // passed to Reconcile in Options.Queue
	controller.Enqueue(instances, queue, func(i App) []listwatch.Key { return []listwatch.Key{{Name: i.Team}} })
	go instances.Run(ctx)

	if _, err := store.Create(ctx, App{Metadata: listwatch.Metadata{Name: "web-0"}, Team: "web"}); err != nil {
		fmt.Println(err)
		return
	}
	key, err := queue.Get(ctx)
	fmt.Println(key, err)
	// Output: web <nil>
}

func ExamplePresence() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	agents, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{
		Kind: "Agent", TTL: func([]byte) time.Duration { return time.Minute },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	w, err := agents.Watch(ctx, listwatch.Query{})
	if err != nil {
		fmt.Println(err)
		return
	}
	process, stop := context.WithCancel(ctx)
	defer stop()
	me := controller.Presence{Store: agents, Object: []byte(`{"metadata":{"name":"agent-1"}}`), Every: 10 * time.Second}
	go me.Run(process)
	for e, err := range listwatch.All(ctx, w) {
		if err != nil {
			return // the last event was printed
		}
		switch fmt.Println(e.Type, e.Object.Key); e.Type {
		case listwatch.Added:
			stop() // the process ends
		case listwatch.Deleted:
			cancel()
		}
	}
	// Output:
	// ADDED agent-1
	// DELETED agent-1
}
