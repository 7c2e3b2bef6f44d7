package informer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/store/memory"
)

func TestCanceledChangesStillAdvanceVersion(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, d := newFixture(t), &callLog{block: make(chan struct{})}
		w.Handle(d.handler(), &informer.HandlerOptions{MaxPending: 1})
		w.run()
		synctest.Wait()
		for i := range 2 { // one call is blocked and one is pending, so the informer blocks
			w.put(fmt.Sprint("n", i), 1)
			synctest.Wait()
		}
		w.put("flash", 1)
		last := w.remove("flash")
		synctest.Wait()
		close(d.block)
		synctest.Wait()
		if v := w.Version(); v < last {
			t.Errorf("the store holds everything up to version %d but reports %d", last, v)
		}
	})
}

func TestNoCallStartsAfterRemove(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t, "a", "b")
		var r *informer.Registration[Thing]
		var calls []string
		proceed := make(chan struct{})
		r = w.Handle(informer.Handler[Thing]{
			OnAdd: func(x Thing, _ bool) {
				calls = append(calls, "+"+x.Name)
				if x.Name == "b" {
					<-proceed
				}
			},
			OnDelete: func(g informer.Deleted[Thing]) {
				calls = append(calls, "-"+g.Key.Name)
				r.Remove()
			},
		}, nil)
		w.run()
		synctest.Wait()
		w.remove("a")
		w.put("a", 2)
		synctest.Wait()
		close(proceed)
		synctest.Wait()
		w.expect("calls", "+a +b -a", strings.Join(calls, " "))
	})
}

func TestRegistrationWaitEndsWithRun(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t, "a")
		r := w.Handle((&callLog{}).handler(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = w.Run(ctx)
		within, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := r.WaitForSync(within); listwatch.CodeOf(err) != listwatch.Unavailable {
			t.Errorf("WaitForSync after Run: got %v, want %v", err, listwatch.Unavailable)
		}
	})
}

func TestWaitingWithoutSourceFails(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		var i informer.Informer[Thing]
		r := i.Handle((&callLog{}).handler(), nil)
		within, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		go func() { _ = i.Run(within) }()
		for what, err := range map[string]error{
			"WaitForSync": i.WaitForSync(within), "WaitForVersion": i.WaitForVersion(within, 7),
			"Registration.WaitForSync": r.WaitForSync(within),
		} {
			if listwatch.CodeOf(err) != listwatch.Invalid {
				t.Errorf("%s: %v, want %v", what, err, listwatch.Invalid)
			}
		}
		r.Remove()
	})
}

func TestChangesStopWithContext(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t, "a", "b", "c").run()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		for range w.Changes(ctx, nil) {
			n++
			cancel()
		}
		if n != 1 {
			t.Errorf("%d changes after the context was canceled, want none", n-1)
		}
	})
}

func TestWaitEndsIfFactoryHasEnded(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		var f informer.Factory
		ended, end := context.WithCancel(t.Context())
		end()
		_ = f.Run(ended)
		i, err := informer.Shared[Thing](&f, memory.New[Thing](), listwatch.Selection{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		within, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := i.WaitForSync(within); listwatch.CodeOf(err) != listwatch.Unavailable {
			t.Errorf("WaitForSync after the factory's Run: got %v, want %v", err, listwatch.Unavailable)
		}
	})
}

func TestInformerOfObjectsKeepsThemUndecoded(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		things := newFixture(t, "a").things
		i := &informer.Informer[*listwatch.Object]{Source: things}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = i.Run(ctx) }()
		if err := i.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		o, _ := i.Get(listwatch.Key{Name: "a"})
		if o == nil || o.Key.Name != "a" || len(o.Data) == 0 || o.Version == 0 {
			t.Errorf("got %+v, want the undecoded object", o)
		}
	})
}

func TestIndexFuncMayReuseItsSlice(t *testing.T) {
	var x informer.Indexer[int]
	values := make([]string, 1)
	if err := x.AddIndex("value", func(i *informer.Item[int]) []string {
		values[0] = fmt.Sprint(i.Value)
		return values
	}); err != nil {
		t.Fatal(err)
	}
	for v := range 3 {
		if err := x.Put(&informer.Item[int]{
			Key: listwatch.Key{Name: "a"}, Version: listwatch.Version(v),
			Value: v,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if all, _ := x.IndexValues("value"); len(all) != 1 {
		t.Errorf("got values %q for one object, want only 2", all)
	}
}

func TestReflectorFeedsCustomFIFO(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t, "a", "b")
		var store informer.Indexer[Thing]
		fifo := informer.DeltaFIFO[Thing]{KnownObjects: &store}
		r := informer.Reflector[Thing]{Source: w.things, Sink: &fifo}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = r.Run(ctx) }()
		synctest.Wait()
		w.remove("b")
		w.put("c", 1)
		synctest.Wait()
		for fifo.Len() > 0 {
			err := fifo.Pop(ctx, func(d informer.Deltas[Thing], _ bool) error {
				if last := d.At(d.Len() - 1); last.Type != informer.DeltaDeleted {
					return store.Put(last.Item)
				}
				return store.Delete(d.Key)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if all, _ := store.List(listwatch.Query{}); len(all) != 2 || all[0].Name != "a" || all[1].Name != "c" {
			t.Errorf("the store holds %v, want a and c", all)
		}
	})
}

// Objects that another program has written in one transaction share a version. The store
// reaches that version with the batch that contains them.
func TestSharedVersionIsReachedWithWholeBatch(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		const group = 20
		source := make(batchSource, 1)
		i := &informer.Informer[*listwatch.Object]{Source: source}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = i.Run(ctx) }()
		if err := i.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		for v := listwatch.Version(2); v < 500; v++ {
			var events []listwatch.Event
			for n := range group {
				o := &listwatch.Object{Key: listwatch.Key{Name: fmt.Sprint(v, "-", n)}, Version: v}
				events = append(events, listwatch.Event{Type: listwatch.Added, Object: o, Version: v})
			}
			source <- events
			if err := i.WaitForVersion(ctx, v); err != nil {
				t.Fatal(err)
			}
			if got, want := i.Len(), int(v-1)*group; got != want {
				t.Fatalf("at version %d the store holds %d objects, want %d", v, got, want)
			}
		}
	})
}

// A batchSource has an empty initial state. Its watch returns the batches that are sent on
// the channel.
type batchSource chan []listwatch.Event

func (b batchSource) List(context.Context, listwatch.Query) (listwatch.Page, error) {
	return listwatch.Page{}, errUnavailable
}

func (b batchSource) Watch(context.Context, listwatch.Query) (listwatch.Watcher, error) {
	b <- []listwatch.Event{listwatch.NewSynced(listwatch.Description{}, listwatch.State{Version: 1}, 0)}
	return b, nil
}

func (b batchSource) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	select {
	case events := <-b:
		return copy(dst, events), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (b batchSource) Close() error { return nil }
