package watchcache_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/typed"
	"github.com/listwatch/listwatch/watchcache"
)

// A Flag is a row of a table.
type Flag struct {
	listwatch.Metadata `json:"metadata"`
	Enabled            bool   `json:"enabled"`
	Note               string `json:"note,omitempty"`
}

func flag(name string, enabled bool) Flag {
	return Flag{Metadata: listwatch.Metadata{Name: name}, Enabled: enabled}
}

// The owner of Go values feeds them to a cache, and reads them from it.
func Example_values() {
	cache := watchcache.New(listwatch.Description{Kind: "Flag", Fields: []string{"enabled"}}, watchcache.Options{})
	defer cache.Fail(nil)
	var objects []*listwatch.Object
	for i, f := range []Flag{flag("dark-mode", false), flag("beta", true)} {
		o, err := typed.NewObject(f, listwatch.Version(40+i))
		if err != nil {
			fmt.Println(err)
			return
		}
		objects = append(objects, o)
	}
	if err := cache.Replace(objects, 41); err != nil {
		fmt.Println(err)
		return
	}
	changed, err := typed.NewObject(flag("dark-mode", true), 42)
	if err == nil {
		err = cache.Apply(watchcache.Change{Object: changed})
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	enabled, err := listwatch.ParseFieldSelector("enabled=true")
	if err != nil {
		fmt.Println(err)
		return
	}
	flags := typed.Collection[Flag]{Store: typed.ReadOnly(cache)}
	items, version, err := flags.Items(context.Background(), listwatch.Query{
		Selection: listwatch.Selection{Fields: enabled},
	})
	for _, f := range items {
		fmt.Println(f.Name, f.ResourceVersion)
	}
	fmt.Println(version, err)
	// Output:
	// beta 41
	// dark-mode 42
	// 42 <nil>
}

func TestValuesHaveAPast(t *testing.T) {
	f := &fixture{t, watchcache.New(listwatch.Description{Kind: "Flag"}, watchcache.Options{})}
	object := func(value Flag, v listwatch.Version) *listwatch.Object {
		o, err := typed.NewObject(value, v)
		f.ok(err)
		return o
	}
	a := flag("a", true)
	a.Note = "<&>"
	f.ok(f.Replace([]*listwatch.Object{object(a, 3)}, 4,
		watchcache.Change{Object: object(a, 3), Old: object(flag("a", false), 1)},
		watchcache.Change{Version: 4, Key: listwatch.Key{Name: "b"}, Old: object(flag("b", false), 2)},
	))
	f.ok(f.Apply(watchcache.Change{Version: 5, Key: a.Key()}))
	f.wantEvents(f.watch(listwatch.Query{Start: listwatch.StartAt, Version: 2}), "MODIFIED a 3", "DELETED b 4",
		"DELETED a 5")
	page, err := f.List(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 3, Match: listwatch.MatchExact})
	f.ok(err)
	const want = `{"kind":"Flag","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"3"},"enabled":true,"note":"<&>"}`
	if got := string(page.Items[0].Data); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestApplyIgnoresTheOldObject(t *testing.T) {
	f := open(t, watchcache.Options{})
	f.apply(watchcache.Change{
		Version: 11, Key: listwatch.Key{Name: "a"},
		Old: &listwatch.Object{Key: listwatch.Key{Name: "a"}},
	})
	f.ok(f.Wait(t.Context(), 11))
}
