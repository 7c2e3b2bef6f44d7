package meter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/meter"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

// Most changes of a node are heartbeats, which few clients need.
func Example() {
	ctx := context.Background()
	nodes, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Node"})
	if err != nil {
		fmt.Println(err)
		return
	}
	w, err := nodes.Watch(ctx, listwatch.Query{Bookmarks: true, InitialEvents: listwatch.InitialEventsYes})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	const node = `{"metadata":{"name":"a"},"spec":{"unschedulable":%v},"status":{"conditions":[{"lastHeartbeatTime":"%d"}]}}`
	_, err = nodes.Create(ctx, fmt.Appendf(nil, node, false, 0))
	for i := range 3 {
		if err == nil {
			_, err = nodes.Replace(ctx, listwatch.Key{Name: "a"}, fmt.Appendf(nil, node, i == 2, i+1))
		}
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	var m meter.Meter
	if err := m.Measure(ctx, w, 100*time.Millisecond); err != nil {
		fmt.Println(err)
		return
	}
	report := m.Report()
	for _, s := range report.Savings {
		if s.Parameter == "fields=-status" {
			fmt.Printf("%s saves %d of %d events\n", s.Parameter, s.Changes.Events, report.Changes.Events)
		}
	}
	// Output: fields=-status saves 2 of 4 events
}
