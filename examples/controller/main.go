// Command controller runs as many instances of each app as the app declares. It shows a controller
// that reads from two informers and retries its reconcile function until it succeeds.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/store/memory"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := demo(ctx, os.Stdout); err != nil && !errors.Is(err, context.Canceled) {
		log.Fatal(err)
	}
}

// demo runs the controller for an app whose declared number changes every two seconds, and prints
// what the controller does, until ctx ends.
func demo(ctx context.Context, out io.Writer) error {
	apps, instances := memory.New[App](), memory.New[Instance]()
	// Both collections could also be client.Remotes, because newScaler takes a Source and a Store.
	s, err := newScaler(apps, instances.Store)
	if err != nil {
		return err
	}
	s.instances.Handle(informer.Handler[Instance]{
		OnAdd:    func(i Instance, _ bool) { fmt.Fprintln(out, "started", i.Name) },
		OnDelete: func(d informer.Deleted[Instance]) { fmt.Fprintln(out, "stopped", d.Key) },
	}, nil)
	go declare(ctx, func(replicas int) error {
		_, err := apps.Update(ctx, listwatch.Key{Name: "web"}, func(a *App) error { a.Replicas = replicas; return nil })
		if errors.Is(err, listwatch.NotFound) {
			_, err = apps.Create(ctx, App{Metadata: listwatch.Metadata{Name: "web"}, Replicas: replicas})
		}
		return err
	})
	return s.run(ctx, 2)
}

// declare calls set with another number of replicas every two seconds, until ctx ends.
func declare(ctx context.Context, set func(replicas int) error) {
	ticker := time.NewTicker(2 * time.Second)
	defer ticker.Stop()
	for n := 0; ; n++ {
		if err := set([]int{3, 5, 1}[n%3]); err != nil && ctx.Err() == nil {
			log.Print(err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
