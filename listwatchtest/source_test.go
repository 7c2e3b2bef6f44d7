package listwatchtest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/listwatchtest"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/typed"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

type Flag struct {
	listwatch.Metadata `json:"metadata"`
}

// A fixture is a store and a Source over it.
type fixture struct {
	*testing.T
	flags  typed.Collection[Flag]
	source *listwatchtest.Source
}

func inBubble(t *testing.T, f func(*fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		flags := memory.New[Flag]()
		f(&fixture{t, flags, listwatchtest.New(flags)})
	})
}

// create creates the flag and returns its version.
func (x *fixture) create(name string) listwatch.Version {
	x.Helper()
	flag := testkit.Must(x.flags.Create(x.Context(), Flag{Metadata: listwatch.Metadata{Name: name}}))(x)
	return flag.Version()
}

func (x *fixture) watch(q listwatch.Query) listwatch.Watcher {
	x.Helper()
	return testkit.Must(x.source.Watch(x.Context(), q))(x)
}

// next returns the names of the next events of w, or the error.
func (x *fixture) next(w listwatch.Watcher) ([]string, error) {
	var events [8]listwatch.Event
	n, err := w.Next(x.Context(), events[:])
	var names []string
	for _, e := range events[:n] {
		names = append(names, e.Object.Key.Name)
	}
	return names, err
}

func (x *fixture) expect(w listwatch.Watcher, want ...string) {
	x.Helper()
	if got, err := x.next(w); err != nil || !slices.Equal(got, want) {
		x.Errorf("got the events %q and the error %v, want %q", got, err, want)
	}
}

func at(v listwatch.Version) listwatch.Query {
	return listwatch.Query{Start: listwatch.StartAt, Version: v}
}

func TestCutEndsOpenWatchesOnly(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want error
	}{{nil, listwatch.Unavailable}, {io.EOF, io.EOF}, {&listwatch.Error{Code: listwatch.Corrupt}, listwatch.Corrupt}} {
		inBubble(t, func(x *fixture) {
			a := x.create("a")
			waiting, reading := x.watch(at(a)), x.watch(at(a))
			ended := make(chan error, 1)
			go func() {
				_, err := x.next(waiting)
				ended <- err
			}()
			synctest.Wait()
			if n := x.source.OpenWatches(); n != 2 {
				t.Errorf("%d watches are open, want 2", n)
			}
			x.source.Cut(tt.err)
			b := x.create("b")
			if err := <-ended; !errors.Is(err, tt.want) {
				t.Errorf("Cut(%v): the watch that waits ended with %v, want %v", tt.err, err, tt.want)
			}
			for range 2 {
				if events, err := x.next(reading); len(events) > 0 || !errors.Is(err, tt.want) {
					t.Errorf("Cut(%v): the next read returned %q and %v, want %v", tt.err, events, err, tt.want)
				}
			}
			resumed := x.watch(at(a))
			x.expect(resumed, "b")
			if n := x.source.OpenWatches(); n != 1 {
				t.Errorf("%d watches are open, want only the one that resumed at %d", n, b)
			}
			for range 2 {
				if err := resumed.Close(); err != nil {
					t.Error(err)
				}
			}
			if n := x.source.OpenWatches(); n != 0 {
				t.Errorf("%d watches are open after Close, want none", n)
			}
		})
	}
}

func TestExpireDropsTheHistory(t *testing.T) {
	inBubble(t, func(x *fixture) {
		first := x.create("a")
		open := x.watch(at(first))
		newest := x.create("b")
		page, err := x.source.List(x.Context(), listwatch.Query{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := x.source.Expire(); err != nil {
			t.Fatal(err)
		}
		if _, err := x.next(open); !errors.Is(err, listwatch.Expired) {
			t.Errorf("the open watch ended with %v, want %v", err, listwatch.Expired)
		}
		if _, err := x.source.Watch(x.Context(), at(first)); !errors.Is(err, listwatch.Expired) {
			t.Errorf("a watch of an older version: got %v, want %v", err, listwatch.Expired)
		}
		for what, q := range map[string]listwatch.Query{
			"an exact list of an older version": {
				Start: listwatch.StartAt, Version: first,
				Match: listwatch.MatchExact,
			},
			"an older continue token": {Limit: 1, Continue: page.Continue},
		} {
			if _, err := x.source.List(x.Context(), q); !errors.Is(err, listwatch.Expired) {
				t.Errorf("%s: got %v, want %v", what, err, listwatch.Expired)
			}
		}
		initial := at(first)
		initial.InitialEvents = listwatch.InitialEventsYes
		x.expect(x.watch(initial), "a", "b")
		resumed := x.watch(at(newest))
		x.create("c")
		x.expect(resumed, "c")
	})
}

func TestContinueTokensWorkUntilExpire(t *testing.T) {
	inBubble(t, func(x *fixture) {
		for _, name := range []string{"a", "b", "c"} {
			x.create(name)
		}
		for range 2 {
			var got []string
			var q listwatch.Query
			for q.Limit = 1; ; {
				page, err := x.source.List(x.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, page.Items[0].Key.Name)
				if q.Continue = page.Continue; q.Continue == "" {
					break
				}
			}
			if want := []string{"a", "b", "c"}; !slices.Equal(got, want) {
				t.Errorf("got the objects %q, want %q", got, want)
			}
			if err := x.source.Expire(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := x.source.List(x.Context(), listwatch.Query{Continue: "foreign"}); !errors.Is(err,
			listwatch.Invalid) {
			t.Errorf("an unknown continue token: got %v, want %v", err, listwatch.Invalid)
		}
	})
}

func TestFailRefusesRequests(t *testing.T) {
	inBubble(t, func(x *fixture) {
		down := errors.New("down")
		open := x.watch(at(x.create("a")))
		x.source.Fail(down)
		if _, err := x.source.List(x.Context(), listwatch.Query{}); err != down {
			t.Errorf("List returned %v, want %v", err, down)
		}
		if _, err := x.source.Watch(x.Context(), listwatch.Query{}); err != down {
			t.Errorf("Watch returned %v, want %v", err, down)
		}
		x.create("b")
		x.expect(open, "b")
		x.source.Fail(nil)
		x.expect(x.watch(listwatch.Query{}), "a", "b")
		if _, err := x.source.List(x.Context(), listwatch.Query{}); err != nil {
			t.Error(err)
		}
		if lists, watches := x.source.Lists(), x.source.Watches(); len(lists) != 2 || len(watches) != 3 ||
			watches[0].Start != listwatch.StartAt {
			t.Errorf("the source recorded the lists %+v and the watches %+v, want 2 and 3", lists, watches)
		}
	})
}

func TestDelayMakesEachCallTakeLonger(t *testing.T) {
	inBubble(t, func(x *fixture) {
		x.source.Delay(time.Second)
		var w listwatch.Watcher
		for _, call := range []struct {
			name string
			call func()
		}{
			{"List", func() { _, _ = x.source.List(x.Context(), listwatch.Query{}) }},
			{"Watch", func() { w = x.watch(listwatch.Query{}) }},
			{"Next", func() {
				x.create("a")
				x.expect(w, "a")
			}},
		} {
			start := time.Now()
			call.call()
			if took := time.Since(start); took != time.Second {
				t.Errorf("%s took %v, want the delay of 1s", call.name, took)
			}
		}
		x.source.Delay(-1)
		start := time.Now()
		x.create("b")
		x.expect(w, "b")
		if took := time.Since(start); took != 0 {
			t.Errorf("Next took %v after the delay was removed, want 0s", took)
		}
	})
}

func TestContextEndsDelayWithoutLoss(t *testing.T) {
	inBubble(t, func(x *fixture) {
		w := x.watch(listwatch.Query{})
		x.create("a")
		x.source.Delay(time.Hour)
		start := time.Now()
		ctx, cancel := context.WithTimeout(x.Context(), time.Second)
		defer cancel()
		if _, err := x.source.List(ctx, listwatch.Query{}); err != context.DeadlineExceeded {
			t.Errorf("List returned %v, want the error of its context", err)
		}
		if _, err := x.source.Watch(ctx, listwatch.Query{}); err != context.DeadlineExceeded {
			t.Errorf("Watch returned %v, want the error of its context", err)
		}
		var got []string
		for len(got) == 0 {
			var events [1]listwatch.Event
			within, cancel := context.WithTimeout(x.Context(), time.Second)
			n, err := w.Next(within, events[:])
			cancel()
			if n > 0 {
				got = append(got, events[0].Object.Key.Name)
			} else if err != context.DeadlineExceeded {
				t.Fatal(err)
			}
		}
		if want := []string{"a"}; !slices.Equal(got, want) {
			t.Errorf("got the events %q, want %q", got, want)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("the calls took %v, want 2s: the time limits of the requests and of Next", took)
		}
	})
}

func TestCutEndsADelayedNext(t *testing.T) {
	inBubble(t, func(x *fixture) {
		w := x.watch(listwatch.Query{})
		x.source.Delay(time.Hour)
		x.create("a")
		start := time.Now()
		time.AfterFunc(time.Second, func() { x.source.Cut(nil) })
		if _, err := x.next(w); !errors.Is(err, listwatch.Unavailable) || time.Since(start) != time.Second {
			t.Errorf("Next returned %v after %v, want an error of code Unavailable after 1s", err, time.Since(start))
		}
	})
}

func TestReplaceServesAnotherSource(t *testing.T) {
	inBubble(t, func(x *fixture) {
		x.create("a")
		w := x.watch(at(x.create("b")))
		if err := x.source.Expire(); err != nil {
			t.Fatal(err)
		}
		second := memory.Open(memory.Options{StartVersion: 7})
		things, err := second.Collection(store.CollectionSpec{Kind: "Thing"})
		if err != nil {
			t.Fatal(err)
		}
		x.source.Replace(things)
		if _, err := x.next(w); !errors.Is(err, listwatch.Expired) {
			t.Errorf("the watch that expired before ended with %v", err)
		}
		if d := listwatch.Describe(x.source); d.Kind != "Thing" || d.Epoch != second.Epoch() {
			t.Errorf("the source describes itself as %+v, want the kind Thing and the epoch %s", d, second.Epoch())
		}
		w = x.watch(at(7))
		if _, err := things.Create(x.Context(), []byte(`{"metadata":{"name":"c"}}`)); err != nil {
			t.Fatal(err)
		}
		x.expect(w, "c")
	})
}

// A client that resumes after each fault must receive every event once.
func TestFaultsNeverReorderOrRepeatEvents(t *testing.T) {
	inBubble(t, func(x *fixture) {
		var want, got []string
		last := x.create("start")
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for n := range 300 {
				name := fmt.Sprint("n", n)
				x.create(name)
				want = append(want, name)
				switch rand.IntN(5) {
				case 0:
					x.source.Cut([]error{nil, io.EOF}[rand.IntN(2)])
				case 1:
					x.source.Delay(rand.N(time.Second))
				case 2:
					x.source.Fail([]error{nil, errors.New("down")}[rand.IntN(2)])
				case 3:
					time.Sleep(rand.N(2 * time.Second))
				}
			}
			x.source.Fail(nil)
		}()
		ctx, cancel := context.WithTimeout(x.Context(), 2*time.Hour)
		defer cancel()
		for ctx.Err() == nil {
			w, err := x.source.Watch(ctx, at(last))
			if err != nil {
				time.Sleep(time.Second)
				continue
			}
			for e, err := range listwatch.All(ctx, w) {
				if err == nil {
					got, last = append(got, e.Object.Key.Name), e.Version
				}
			}
			_ = w.Close()
		}
		<-stopped
		if !slices.Equal(got, want) {
			t.Errorf("got the events\n%q\nwant\n%q", got, want)
		}
	})
}
