package listwatchtest_test

import (
	"context"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/listwatchtest"
	"github.com/listwatch/listwatch/store/memory"
)

func ExampleSource() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := memory.New[Flag]()
	source := listwatchtest.New(store)
	flags := &informer.Informer[Flag]{
		Source:  source,
		Backoff: listwatch.Backoff{Min: -1}, // no delay; not needed in a bubble of testing/synctest
	}
	go flags.Run(ctx)
	if err := flags.WaitForSync(ctx); err != nil {
		fmt.Println(err)
		return
	}
	if err := source.Expire(); err != nil {
		fmt.Println(err)
		return
	}
	created, err := store.Create(ctx, Flag{Metadata: listwatch.Metadata{Name: "dark-mode"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := flags.WaitForVersion(ctx, created.Version()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(flags.Len(), "flag after", len(source.Watches()), "watches")
	// Output: 1 flag after 2 watches
}
