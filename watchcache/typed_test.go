package watchcache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/listwatch/listwatch"
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

// The owner of Go values feeds them to a cache.
func ExampleTyped() {
	flags := watchcache.NewTyped[Flag](listwatch.Description{Kind: "Flag", Fields: []string{"enabled"}}, watchcache.Options{})
	defer flags.Fail(nil)
	rows := []watchcache.TypedValue[Flag]{{Version: 40, Value: flag("dark-mode", false)}, {Version: 41, Value: flag("beta", true)}}
	if err := flags.Replace(rows, 41); err != nil {
		fmt.Println(err)
		return
	}
	darkMode := flag("dark-mode", true)
	if err := flags.Apply(watchcache.TypedChange[Flag]{Version: 42, Value: &darkMode}); err != nil {
		fmt.Println(err)
		return
	}
	enabled, err := listwatch.ParseFieldSelector("enabled=true")
	if err != nil {
		fmt.Println(err)
		return
	}
	page, err := flags.List(context.Background(), listwatch.Query{Fields: enabled})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range page.Items {
		value, err := listwatch.Decode[Flag](o)
		fmt.Println(value.Name, value.ResourceVersion, err)
	}
	// Output:
	// beta 41 <nil>
	// dark-mode 42 <nil>
}

func TestTypedValuesHaveAPast(t *testing.T) {
	flags := watchcache.NewTyped[Flag](listwatch.Description{Kind: "Flag"}, watchcache.Options{})
	f := &fixture{t, flags.Cache}
	a := flag("a", true)
	a.Note = "<&>"
	f.ok(flags.Replace([]watchcache.TypedValue[Flag]{{Version: 3, Value: a}}, 4,
		watchcache.TypedChange[Flag]{Version: 3, Value: &a, Old: &watchcache.TypedValue[Flag]{Version: 1, Value: flag("a", false)}},
		watchcache.TypedChange[Flag]{Version: 4, Key: listwatch.Key{Name: "b"}, Old: &watchcache.TypedValue[Flag]{Version: 2, Value: flag("b", false)}},
	))
	f.ok(flags.Apply(watchcache.TypedChange[Flag]{Version: 5, Key: a.Key()}))
	f.wantEvents(f.watch(listwatch.Query{Start: listwatch.StartAt, Version: 2}), "MODIFIED a 3", "DELETED b 4", "DELETED a 5")
	page, err := f.List(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 3, Match: listwatch.MatchExact})
	f.ok(err)
	const want = `{"metadata":{"name":"a","resourceVersion":"3"},"enabled":true,"note":"<&>"}`
	if got := string(page.Items[0].Data); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUnsuitableTypedValuesAreRefused(t *testing.T) {
	functions := watchcache.NewTyped[func()](things, watchcache.Options{})
	if err := functions.Replace(make([]watchcache.TypedValue[func()], 1), 1); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("a value without JSON: got %v, want Invalid", err)
	}
	numbers := watchcache.NewTyped[struct{ N int }](things, watchcache.Options{})
	number := watchcache.TypedValue[struct{ N int }]{Version: 1}
	if err := numbers.Replace([]watchcache.TypedValue[struct{ N int }]{number}, 1); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("a value without metadata: got %v, want Invalid", err)
	}
	flags := watchcache.NewTyped[Flag](things, watchcache.Options{})
	if err := flags.Replace(nil, 1); err != nil {
		t.Fatal(err)
	}
	a := flag("a", true)
	if err := flags.Apply(watchcache.TypedChange[Flag]{Value: &a}); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("a change without a version: got %v, want Invalid", err)
	}
	old := watchcache.TypedChange[Flag]{Version: 2, Key: a.Key(), Old: &watchcache.TypedValue[Flag]{Value: a}}
	if err := watchcache.NewTyped[Flag](things, watchcache.Options{}).Replace(nil, 2, old); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("an old value without a version: got %v, want Invalid", err)
	}
	if err := flags.Apply(old); err != nil {
		t.Errorf("Apply, which ignores the old value: %v", err)
	}
}
