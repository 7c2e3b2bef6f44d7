package watchcache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

// calls counts the calls of Options.Newest and Options.Direct.
type calls struct{ newest, direct int }

// countCalls opens a cache with the objects at version 10. The data is at version 20. A write to
// another collection has that version, so the cache does not reach it.
func countCalls(t *testing.T, objects ...*listwatch.Object) (*watchcache.Cache, *calls) {
	t.Helper()
	var n calls
	cache := watchcache.New(things, watchcache.Options{
		Newest: func(context.Context) (listwatch.Version, error) {
			n.newest++
			return 20, nil
		},
		Direct: func(_ context.Context, q listwatch.Query) (listwatch.Page, error) {
			n.direct++
			return listwatch.Page{Items: objects, Version: 20}, nil
		},
	})
	if err := cache.Replace(objects, 10); err != nil {
		t.Fatal(err)
	}
	return cache, &n
}

func TestSmallNewestStatesNeedNoVersion(t *testing.T) {
	var many []*listwatch.Object
	for i := range 101 {
		many = append(many, thing(fmt.Sprint("many", i), "red", 10))
		many[i].Key.Namespace = "many"
	}
	few := []*listwatch.Object{thing("a", "red", 10)}
	large := []*listwatch.Object{thing("a", strings.Repeat("r", 33<<10), 10)}
	for name, test := range map[string]struct {
		objects []*listwatch.Object
		q       listwatch.Query
		want    calls
	}{
		"no object":           {nil, listwatch.Query{}, calls{0, 1}},
		"few objects":         {few, listwatch.Query{}, calls{0, 1}},
		"selected objects":    {few, listwatch.Query{Selection: listwatch.Selection{Name: "a"}}, calls{0, 1}},
		"pages that hold all": {few, listwatch.Query{Limit: 100}, calls{0, 1}},
		"small pages":         {few, listwatch.Query{Limit: 99}, calls{1, 1}},
		"many objects":        {many, listwatch.Query{}, calls{1, 1}},
		"another namespace": {
			many,
			listwatch.Query{Selection: listwatch.Selection{Namespace: "few"}},
			calls{0, 1},
		},
		"a large object":          {large, listwatch.Query{}, calls{1, 1}},
		"any state":               {few, listwatch.Query{Start: listwatch.StartAny}, calls{}},
		"the state at a version":  {few, listwatch.Query{Start: listwatch.StartAt, Version: 10}, calls{}},
		"a version in the future": {few, listwatch.Query{Start: listwatch.StartAt, Version: 11}, calls{0, 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			cache, got := countCalls(t, test.objects...)
			if _, err := cache.List(t.Context(), test.q); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if *got != test.want {
				t.Errorf("%s: %d calls of Newest and %d of Direct, want %d and %d",
					name, got.newest, got.direct, test.want.newest, test.want.direct)
			}
		})
	}
}

// A cache whose versions belong to its collection alone has the newest one, so that the version is
// cheaper than the list.
func TestSmallStatesAreListedWhileVersionsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n calls
		newest := listwatch.Version(10)
		f := open(t, watchcache.Options{
			Newest: func(context.Context) (listwatch.Version, error) {
				n.newest++
				return newest, nil
			},
			Direct: func(context.Context, listwatch.Query) (listwatch.Page, error) {
				n.direct++
				return listwatch.Page{Version: newest}, nil
			},
		})
		for i, step := range []struct {
			newest listwatch.Version
			lists  int
			want   calls
		}{
			{10, 8, calls{0, 8}},   // nothing is known
			{10, 2, calls{2, 8}},   // the cache had the newest version eight times
			{20, 1, calls{3, 9}},   // it has not, because of a write to another collection
			{30, 20, calls{3, 29}}, // and again
		} {
			newest = step.newest
			for range step.lists {
				f.names(listwatch.Query{})
			}
			if n != step.want {
				t.Errorf("after step %d: %d calls of Newest and %d of Direct, want %d and %d",
					i, n.newest, n.direct, step.want.newest, step.want.direct)
			}
		}
	})
}

// The first reader lists the state, and the others share the version, which the cache has.
func TestReadersShareTheVersionOfASmallState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n calls
		f := open(t, watchcache.Options{
			Newest: func(context.Context) (listwatch.Version, error) {
				n.newest++
				time.Sleep(time.Second)
				return 10, nil
			},
			Direct: func(context.Context, listwatch.Query) (listwatch.Page, error) {
				n.direct++
				time.Sleep(time.Second)
				return listwatch.Page{Version: 10}, nil
			},
		})
		var readers sync.WaitGroup
		for range 1000 {
			readers.Go(func() { _, err := f.List(t.Context(), listwatch.Query{}); f.ok(err) })
		}
		readers.Wait()
		if n.direct != 1 {
			t.Errorf("%d calls of Direct, want 1", n.direct)
		}
		if n.newest > 2 {
			t.Errorf("%d calls of Newest, want at most 2", n.newest)
		}
	})
}

// What Direct refuses, such as a selector that the data does not support, the cache can list.
func TestVersionDecidesWhereDirectFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, watchcache.Options{
			Newest: func(context.Context) (listwatch.Version, error) { return 10, nil },
			Direct: func(context.Context, listwatch.Query) (listwatch.Page, error) {
				return listwatch.Page{}, errors.New("refused")
			},
		})
		if page, err := f.List(t.Context(), listwatch.Query{}); err != nil || len(page.Items) != 2 {
			t.Errorf("got %d objects, %v; want 2 objects", len(page.Items), err)
		}
	})
}

func TestSmallNewestListsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, watchcache.Options{
			Newest: func(context.Context) (listwatch.Version, error) { return 10, nil },
			Direct: func(ctx context.Context, _ listwatch.Query) (listwatch.Page, error) {
				<-ctx.Done()
				return listwatch.Page{}, ctx.Err()
			},
		})
		begin := time.Now()
		if _, err := f.List(t.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("got %v, want Unavailable", err)
		}
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("the list ended after %v, want 3 s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := f.List(ctx, listwatch.Query{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the error of the context", err)
		}
		time.AfterFunc(time.Second, func() { f.Fail(nil) })
		begin = time.Now()
		if _, err := f.List(t.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("closed: got %v, want Unavailable", err)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("the list of a closed cache ended after %v, want 1 s", took)
		}
	})
}

// A feed that reports its version soon spares Direct the list of many objects.
func TestManyInitialEventsWaitForTheFeed(t *testing.T) {
	var many []*listwatch.Object
	for i := range 101 {
		many = append(many, thing(fmt.Sprint("many", i), "red", 10))
	}
	few := many[:100]
	red := listwatch.Query{Selection: listwatch.Selection{Name: "many1"}}
	const soon, late = 2 * time.Second, 2500 * time.Millisecond
	for name, test := range map[string]struct {
		objects []*listwatch.Object
		q       listwatch.Query
		wait    time.Duration // the result of InitialWait
		after   time.Duration // the time until the feed reports version 20
		took    time.Duration
		direct  int
	}{
		"many events":    {many, listwatch.Query{}, late, soon, soon, 0},
		"from a version": {many, listwatch.Query{Start: listwatch.StartAt, Version: 20}, late, soon, soon, 0},
		"a version that does not exist": {
			many, listwatch.Query{Start: listwatch.StartAt, Version: 30}, late, soon, 20 * time.Millisecond, 1,
		},
		"few events":          {few, listwatch.Query{}, late, soon, 0, 1},
		"few selected events": {many, red, late, soon, 0, 1},
		"a feed that is late": {many, listwatch.Query{}, soon, late, soon + 20*time.Millisecond, 1},
		"no wait":             {many, listwatch.Query{}, 0, soon, 0, 1},
		"an event on its way": {many, listwatch.Query{}, late, time.Millisecond, time.Millisecond, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			direct := 0
			cache := watchcache.New(things, watchcache.Options{
				Newest: func(context.Context) (listwatch.Version, error) { return 20, nil },
				Direct: func(context.Context, listwatch.Query) (listwatch.Page, error) {
					direct++
					return listwatch.Page{Items: test.objects, Version: 20}, nil
				},
				InitialWait: func() time.Duration { return test.wait },
			})
			if err := cache.Replace(test.objects, 10); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(test.after, func() { cache.Advance(20) })
			begin := time.Now()
			test.q.Bookmarks, test.q.InitialEvents = true, listwatch.InitialEventsYes
			w, err := cache.Watch(t.Context(), test.q)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			defer func() { _ = w.Close() }()
			for e, err := range listwatch.All(t.Context(), w) {
				if err != nil || e.Type == listwatch.Synced {
					if err != nil || e.Version != 20 {
						t.Errorf("%s: the initial events end at version %d with %v, want 20", name, e.Version, err)
					}
					break
				}
			}
			if took := time.Since(begin); took != test.took || direct != test.direct {
				t.Errorf("%s: took %v and %d calls of Direct, want %v and %d", name, took, direct, test.took,
					test.direct)
			}
		})
	}
}

// A list of all objects for which Direct needs long waits for the feed, which usually takes less
// time.
func TestSlowListsWaitForTheFeed(t *testing.T) {
	const fast, slow, wait = 1400 * time.Millisecond, 2 * time.Second, 3 * time.Second
	red := listwatch.Query{Selection: listwatch.Selection{Namespace: "red"}}
	for name, test := range map[string]struct {
		needs  time.Duration // the time that Direct needs
		q      listwatch.Query
		wait   time.Duration // the result of InitialWait
		after  time.Duration // the time until the feed reports version 20
		took   time.Duration
		direct int
	}{
		"a slow list":            {slow, listwatch.Query{}, wait, fast, fast, 0},
		"a feed that is late":    {slow, listwatch.Query{}, wait, time.Hour, 20*time.Millisecond + wait + slow, 1},
		"a fast list":            {fast, listwatch.Query{}, wait, time.Hour, fast, 1},
		"a part of the objects":  {slow, red, wait, time.Hour, slow, 1},
		"a page":                 {slow, listwatch.Query{Limit: 500}, wait, time.Hour, slow, 1},
		"feeds that report late": {slow, listwatch.Query{}, 0, time.Hour, slow, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var all []*listwatch.Object
			for i := range 125 {
				all = append(all, thing(fmt.Sprint("thing", i), "red", 10))
			}
			direct := 0
			cache := watchcache.New(things, watchcache.Options{
				Newest: func(context.Context) (listwatch.Version, error) { return 20, nil },
				Direct: func(context.Context, listwatch.Query) (listwatch.Page, error) {
					direct++
					time.Sleep(test.needs)
					return listwatch.Page{Items: all, Version: 20}, nil
				},
				InitialWait: func() time.Duration { return test.wait },
			})
			if err := cache.Replace(all, 10); err != nil {
				t.Fatal(err)
			}
			if _, err := cache.List(t.Context(), listwatch.Query{}); err != nil || direct != 1 {
				t.Fatalf("%s: got %v after %d calls of Direct, want one", name, err, direct)
			}
			time.AfterFunc(test.after, func() { cache.Advance(20) })
			begin := time.Now()
			page, err := cache.List(t.Context(), test.q)
			if err != nil || page.Version != 20 {
				t.Errorf("%s: got version %d, %v, want 20", name, page.Version, err)
			}
			if took := time.Since(begin); took != test.took || direct-1 != test.direct {
				t.Errorf("%s: took %v and %d calls of Direct, want %v and %d", name, took, direct-1, test.took,
					test.direct)
			}
		})
	}
}
