// Command controller runs the number of instances that each app declares. It shows how
// informers serve the reads and a work queue holds the keys to reconcile.
package main

import (
	"context"
	"fmt"
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
	apps, instances := memory.New[App](), memory.New[Instance]()
	// An informer follows any Source, so each of the two stores could also be a client.Remote.
	c, err := newController(apps, instances, instances)
	if err != nil {
		log.Fatal(err)
	}
	c.instances.Handle(informer.Handler[Instance]{
		OnAdd:    func(i Instance, _ bool) { fmt.Println("started", i.Name) },
		OnDelete: func(d informer.Deleted[Instance]) { fmt.Println("stopped", d.Key) },
	}, nil)
	go scale(ctx, func(replicas int) error {
		_, err := apps.Update(ctx, listwatch.Key{Name: "web"}, func(a *App) error { a.Replicas = replicas; return nil })
		if listwatch.CodeOf(err) == listwatch.NotFound {
			_, err = apps.Create(ctx, App{Metadata: listwatch.Metadata{Name: "web"}, Replicas: replicas})
		}
		return err
	})
	c.run(ctx, 2)
}

// scale calls the function set with another number of replicas every two seconds.
func scale(ctx context.Context, set func(replicas int) error) {
	ticker := time.NewTicker(2 * time.Second)
	defer ticker.Stop()
	for n := 0; ; n++ {
		replicas := []int{3, 5, 1}[n%3]
		fmt.Println("desired replicas:", replicas)
		if err := set(replicas); err != nil {
			log.Print(err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
