package typed_test

import (
	"context"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/typed"
)

type Flag struct {
	listwatch.Metadata `json:"metadata"`
	Enabled            bool `json:"enabled"`
}

// A collection of JSON objects that is read and written as values of a Go type.
func ExampleCollection() {
	ctx := context.Background()
	collection, err := memory.Open(memory.Options{}).Collection(store.SpecOf[Flag]())
	if err != nil {
		fmt.Println(err)
		return
	}
	flags := typed.Collection[Flag]{Store: collection}

	flag, err := flags.Create(ctx, Flag{Metadata: listwatch.Metadata{Name: "dark-mode"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Concurrent updates do not overwrite each other: the function runs again with the newer
	// value.
	flag, err = flags.Update(ctx, flag.Key(), func(f *Flag) error {
		f.Enabled = true
		return nil
	})
	fmt.Println(flag.Name, flag.Enabled, flag.Generation, err)

	items, _, err := flags.Items(ctx, listwatch.Query{})
	fmt.Println(len(items), "flag,", err)
	// Output:
	// dark-mode true 2 <nil>
	// 1 flag, <nil>
}
