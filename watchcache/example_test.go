package watchcache_test

import (
	"context"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

// The owner of the data feeds the cache, and everyone else lists and watches it.
func Example() {
	ctx := context.Background()
	cache := watchcache.New(listwatch.Description{Kind: "Flag"}, watchcache.Options{})
	defer cache.Fail(nil)

	// The state of the table at version 41.
	flag,
		err := listwatch.ParseObject([]byte(`{"metadata":{"name":"dark-mode","resourceVersion":"40"},"enabled":false}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := cache.Replace([]*listwatch.Object{flag}, 41); err != nil {
		fmt.Println(err)
		return
	}
	w, err := cache.Watch(ctx, listwatch.Query{Start: listwatch.StartAt, Version: 41})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()

	// Two changes of the table.
	enabled,
		err := listwatch.ParseObject([]byte(`{"metadata":{"name":"dark-mode","resourceVersion":"42"},"enabled":true}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	err = cache.Apply(
		watchcache.Change{Object: enabled},
		watchcache.Change{Key: enabled.Key, Version: 43}, // a delete
	)
	if err != nil {
		fmt.Println(err)
		return
	}

	for e, err := range listwatch.All(ctx, w) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.Type, e.Object.Key, e.Version)
		if e.Type == listwatch.Deleted {
			break
		}
	}
	// Output:
	// MODIFIED dark-mode 42
	// DELETED dark-mode 43
}
