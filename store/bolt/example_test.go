package bolt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/bolt"
	"github.com/listwatch/listwatch/typed"
)

// A Flag is a Go type whose values can be stored and watched.
type Flag struct {
	listwatch.Metadata `json:"metadata"`
	Enabled            bool `json:"enabled"`
}

// The state and the history survive a restart, so a watch can resume from a version before
// the restart.
func ExampleOpen() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "flags")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "flags.db")

	db, flags, err := openFlags(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	flag, err := flags.Create(ctx, Flag{Metadata: listwatch.Metadata{Name: "dark-mode"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := flags.Update(ctx, flag.Key(), func(f *Flag) error { f.Enabled = true; return nil }); err != nil {
		fmt.Println(err)
		return
	}
	if err := db.Close(); err != nil {
		fmt.Println(err)
		return
	}

	db, flags, err = openFlags(file) // the restart
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	for event, err := range flags.Events(ctx,
		listwatch.Query{Start: listwatch.StartAt, Version: flag.Metadata.Version()}) {
		fmt.Println(event.Type, event.Object.Name, event.Object.Enabled, err)
		break
	}
	// Output: MODIFIED dark-mode true <nil>
}

func openFlags(file string) (db *bolt.DB, flags typed.Collection[Flag], err error) {
	if db, err = bolt.Open(file, bolt.Options{}); err != nil {
		return nil, flags, err
	}
	c, err := db.Collection(store.SpecOf[Flag]())
	return db, typed.Collection[Flag]{Store: c}, err
}
