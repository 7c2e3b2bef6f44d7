package watchcache_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

func TestReadsAwaitTheFirstState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{t, watchcache.New(things, watchcache.Options{})}
		if _, err := f.List(t.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("without a state: got %v, want Unavailable", err)
		}
		time.AfterFunc(time.Second, func() { f.ok(f.Replace(nil, 1)) })
		w := f.watch(listwatch.Query{Bookmarks: true})
		f.wantEvents(w, "BOOKMARK 1")
		if s := f.Stats(); s.Oldest != 1 || s.Newest != 1 {
			t.Errorf("an empty cache has %+v, want version 1", s)
		}
	})
}

// There are many waiters, so that some of them run before Replace returns.
func TestLookupFindsTheAwaitedState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{t, watchcache.New(things, watchcache.Options{})}
		var waiting sync.WaitGroup
		var missing atomic.Int64
		const waiters = 5000
		for range waiters {
			waiting.Go(func() {
				if err := f.Wait(t.Context(), 10); err != nil || f.Lookup(listwatch.Key{Name: "a"}) == nil {
					missing.Add(1)
				}
			})
		}
		synctest.Wait()
		f.ok(f.Replace([]*listwatch.Object{thing("a", "red", 10)}, 10))
		waiting.Wait()
		if n := missing.Load(); n > 0 {
			t.Errorf("%d of %d waiters did not find the object", n, waiters)
		}
	})
}

func TestFailEndsReadsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unfed := watchcache.New(things, watchcache.Options{})
		fed := open(t, watchcache.Options{})
		errs := make(chan error)
		go func() {
			_, err := unfed.List(t.Context(), listwatch.Query{})
			errs <- err
		}()
		go func() { errs <- fed.Wait(t.Context(), 11) }()
		synctest.Wait()
		start := time.Now()
		unfed.Fail(nil)
		fed.Fail(nil)
		for range 2 {
			if err := <-errs; !errors.Is(err, listwatch.Unavailable) || time.Since(start) > 0 {
				t.Errorf("got %v after %v, want Unavailable at once", err, time.Since(start))
			}
		}
	})
}

func TestNewestReadsIncludeAcknowledgedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var newest, calls atomic.Uint64
		newest.Store(10)
		f := open(t, watchcache.Options{Newest: func(context.Context) (listwatch.Version, error) {
			calls.Add(1)
			time.Sleep(time.Millisecond)
			return listwatch.Version(newest.Load()), nil
		}})
		newest.Store(11)
		time.AfterFunc(time.Second, func() { f.apply(put("c", "red", 11)) })
		start := time.Now()
		results := make(chan int)
		for range 10 {
			go func() { results <- len(f.names(listwatch.Query{})) }()
		}
		for range 10 {
			if n := <-results; n != 3 {
				t.Errorf("a list has %d objects, want 3", n)
			}
		}
		if n := calls.Load(); n > 2 || time.Since(start) != time.Second {
			t.Errorf("ten lists took %d calls and %v, want at most 2 and 1s", n, time.Since(start))
		}
		o, err := f.Get(t.Context(), listwatch.Key{Name: "c"})
		if f.ok(err); o.Version != 11 {
			t.Errorf("Get returned version %d, want 11", o.Version)
		}
		newest.Store(12)
		if _, err := f.List(t.Context(), listwatch.Query{}); !errors.Is(err, listwatch.NotYet) {
			t.Errorf("a list that the feed does not reach: got %v, want NotYet", err)
		}
		if _, err := f.List(t.Context(), listwatch.Query{Start: listwatch.StartAny}); err != nil {
			t.Errorf("a list of any state: %v", err)
		}
		w := f.watch(listwatch.Query{})
		time.AfterFunc(time.Second, func() { f.apply(remove("c", 12)) })
		f.wantEvents(w, "ADDED a 7", "ADDED b 10")
	})
}

func TestFailuresOfNewestFailReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var result error
		f := open(t, watchcache.Options{Newest: func(ctx context.Context) (listwatch.Version, error) {
			if result == nil {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 0, result
		}})
		for _, test := range []struct {
			result error
			want   listwatch.Code
		}{
			{nil, listwatch.Unavailable},
			{errors.New("connection refused"), listwatch.Unavailable},
			{&listwatch.Error{Code: listwatch.Forbidden}, listwatch.Forbidden},
		} {
			synctest.Wait() // for the previous call of Newest
			result = test.result
			if _, err := f.List(t.Context(), listwatch.Query{}); !errors.Is(err, test.want) {
				t.Errorf("Newest returns %v: the list returned %v, want %v", test.result, err, test.want)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		synctest.Wait()
		result = nil
		if _, err := f.List(ctx, listwatch.Query{}); !errors.Is(err, context.Canceled) {
			t.Errorf("a list whose context has ended: got %v, want Canceled", err)
		}
		f.Fail(nil)
	})
}

func TestNewestOfVersionZeroIsRefused(t *testing.T) {
	f := open(t, watchcache.Options{Newest: func(context.Context) (listwatch.Version, error) { return 0, nil }})
	if _, err := f.List(t.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Unavailable) {
		t.Errorf("got %v, want Unavailable", err)
	}
}

func TestCompactedVersionsExpire(t *testing.T) {
	f := open(t, watchcache.Options{})
	f.apply(put("c", "red", 11))
	w := f.watch(listwatch.Query{Start: listwatch.StartAt, Version: 11})
	f.Compact()
	if _, err := f.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 10}); !errors.Is(err,
		listwatch.Expired) {
		t.Errorf("a watch from before the compaction: got %v, want Expired", err)
	}
	f.apply(put("d", "red", 12))
	f.wantEvents(w, "ADDED d 12")
	if o := f.Lookup(listwatch.Key{Name: "d"}); o == nil || o.Version != 12 {
		t.Errorf("Lookup returned %v, want d at version 12", o)
	}
}
