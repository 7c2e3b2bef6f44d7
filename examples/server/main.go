// Command server serves feature flags and toggles one of them every second.
package main

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchserver"
)

type Flag struct {
	listwatch.Metadata `json:"metadata"`
	Enabled            bool `json:"enabled"`
}

func main() {
	ctx, flags := context.Background(), memory.New[Flag]()
	flags.Create(ctx, Flag{Metadata: listwatch.Metadata{Name: "dark-mode"}})
	go func() {
		for range time.Tick(time.Second) {
			flags.Update(ctx, listwatch.Key{Name: "dark-mode"}, func(f *Flag) error {
				f.Enabled = !f.Enabled
				return nil
			})
		}
	}()
	http.Handle("/flags", &watchserver.Server{Source: flags})
	log.Fatal(http.ListenAndServe("127.0.0.1:8081", nil))
}
