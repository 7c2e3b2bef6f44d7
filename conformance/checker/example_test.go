package checker_test

import (
	"context"
	"fmt"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance/checker"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// This example watches a store while writing to it, and checks that the watcher saw all
// writes.
func Example() {
	ctx := context.Background()
	db := memory.Open(memory.Options{})
	things, err := db.Collection(store.CollectionSpec{Kind: "Thing"})
	if err != nil {
		fmt.Println(err)
		return
	}
	rec := checker.NewRecorder(checker.Meta{
		Name: "example", Base: db.Version(), Requirements: checker.Requirements{Writes: 3, Events: 3},
	})

	source := rec.Watcher("w1").Source(things, "local")
	w, err := source.Watch(ctx, listwatch.Query{Bookmarks: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	writes := rec.Collection(things)
	for _, name := range []string{"a", "b", "c"} {
		if _, err := writes.Create(ctx, []byte(`{"metadata":{"name":"`+name+`"}}`)); err != nil {
			fmt.Println(err)
			return
		}
	}
	rec.RecordHeal(db.Version())

	events := make([]listwatch.Event, 4)
	for got := 0; got < len(events); { // the end of the empty initial state, and three ADDED events
		n, err := w.Next(ctx, events[got:])
		if err != nil {
			fmt.Println(err)
			return
		}
		got += n
	}
	w.Close()

	report, err := checker.Check(rec.History(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Err(), report.Summary.Events, "events")
	// Output: <nil> 3 events
}
