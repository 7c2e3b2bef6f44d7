package mapstore

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/conformance"
	"github.com/listwatch/listwatch/store"
)

// A database is a [conformance.Database] whose collections are stores of this package.
type database struct {
	historyBytes int64
	stores       []*Backend
}

func (d *database) Collection(s store.CollectionSpec) (*store.Collection, error) {
	c, b := New(s, d.historyBytes)
	d.stores = append(d.stores, b)
	return c, nil
}

func (d *database) Compact() {
	for _, b := range d.stores {
		b.Compact(math.MaxUint64)
	}
}

func TestStore(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	conformance.TestSource(t, func(_ conformance.T, historyBytes int64) conformance.Database {
		return &database{historyBytes: historyBytes}
	}, conformance.Exceptions{
		"comp/shared-once": "only the stores of listwatch share encoded events among watchers",
	})
}

func Example() {
	ctx := context.Background()
	pods, _ := New(store.CollectionSpec{Kind: "Pod"}, 0)
	w, err := pods.Watch(ctx, listwatch.Query{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	pod, err := pods.Create(ctx, []byte(`{"metadata":{"name":"web"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for e, err := range listwatch.All(ctx, w) {
		fmt.Println(e.Type, e.Object.Key, e.Version == pod.Version, err)
		break
	}
	// Output: ADDED web true <nil>
}
