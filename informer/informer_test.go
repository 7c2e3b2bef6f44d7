package informer_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/typed"
)

// Thing is the object type of these tests.
type Thing struct {
	listwatch.Metadata `json:"metadata"`
	Spec               int `json:"spec"`
}

// A fixture is a memory store and an informer of its objects.
type fixture struct {
	t      *testing.T
	things typed.Collection[Thing]
	*informer.Informer[Thing]
}

// newFixture returns a store with objects of the given names, and an informer that is not
// running yet.
func newFixture(t *testing.T, names ...string) *fixture {
	t.Helper()
	things := memory.New[Thing]()
	w := &fixture{t: t, things: things, Informer: &informer.Informer[Thing]{Source: things}}
	for _, name := range names {
		w.put(name, 1)
	}
	return w
}

// run runs the informer until the test ends.
func (w *fixture) run() *fixture {
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != context.Canceled {
			w.t.Errorf("Run returned %v, want %v", err, context.Canceled)
		}
	})
	return w
}

func (w *fixture) put(name string, spec int) listwatch.Version {
	w.t.Helper()
	key := listwatch.Key{Name: name}
	thing, err := w.things.Update(w.t.Context(), key, func(t *Thing) error {
		t.Spec = spec
		return nil
	})
	if listwatch.CodeOf(err) == listwatch.NotFound {
		thing, err = w.things.Create(w.t.Context(), Thing{Metadata: listwatch.Metadata{Name: name}, Spec: spec})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return thing.Version()
}

func (w *fixture) remove(name string) listwatch.Version {
	w.t.Helper()
	thing, err := w.things.Delete(w.t.Context(), listwatch.Key{Name: name}, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return thing.Version()
}

// A callLog records the calls of a handler: "+a1!" means an initial OnAdd of a with spec 1,
// "+a1" a later OnAdd, "a1>2" an OnUpdate, "a1=" a resync, "-a2" an OnDelete, and "-a2?" an
// OnDelete with an unknown final state.
type callLog struct {
	mu    sync.Mutex
	lines []string
	// If block is not nil, each call waits until block is closed.
	block chan struct{}
}

func (c *callLog) write(line string) {
	c.mu.Lock()
	c.lines = append(c.lines, line)
	held := c.block
	c.mu.Unlock()
	if held != nil {
		<-held
	}
}

func (c *callLog) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.lines, " ")
}

// take returns the log as text and clears it.
func (c *callLog) take() string {
	defer func() { c.mu.Lock(); c.lines = nil; c.mu.Unlock() }()
	return c.text()
}

func (c *callLog) handler() informer.Handler[Thing] {
	return informer.Handler[Thing]{
		OnAdd: func(t Thing, initial bool) {
			c.write(fmt.Sprintf("+%s%d%s", t.Name, t.Spec, map[bool]string{true: "!"}[initial]))
		},
		OnUpdate: func(old, t Thing) {
			if old.ResourceVersion == t.ResourceVersion {
				c.write(fmt.Sprintf("%s%d=", t.Name, t.Spec))
				return
			}
			c.write(fmt.Sprintf("%s%d>%d", t.Name, old.Spec, t.Spec))
		},
		OnDelete: func(g informer.Deleted[Thing]) {
			c.write(fmt.Sprintf("-%s%d%s", g.Value.Name, g.Value.Spec, map[bool]string{true: "?"}[g.FinalStateUnknown]))
		},
	}
}

func (w *fixture) expect(what, want, got string) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// withFakeTime runs a test in fake time.
func withFakeTime(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

func TestHandlerSeesStateThenChanges(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, d := newFixture(t, "a", "b"), &callLog{}
		w.Handle(d.handler(), nil)
		w.run()
		if err := w.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.expect("calls before the sync", "+a1! +b1!", d.take())
		for _, step := range []struct {
			do   func()
			want string
		}{
			{func() { w.put("a", 2) }, "a1>2"},
			{func() { w.put("c", 1) }, "+c1"},
			{func() { w.remove("b") }, "-b1"},
			{func() { w.put("b", 7) }, "+b7"},
		} {
			step.do()
			synctest.Wait()
			w.expect("calls for a change", step.want, d.take())
		}
	})
}

func TestLateHandlerGetsEachObjectOnce(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, d := newFixture(t, "a", "b").run(), &callLog{}
		w.put("c", 1)
		synctest.Wait()
		r := w.Handle(d.handler(), nil)
		w.put("d", 1)
		if err := r.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.expect("calls of the late handler", "+a1! +b1! +c1! +d1", d.text())
	})
}

func TestRemovedHandlerIsNotCalled(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, d := newFixture(t, "a"), &callLog{}
		r := w.Handle(d.handler(), nil)
		w.run()
		synctest.Wait()
		r.Remove()
		r.Remove()
		w.put("a", 2)
		synctest.Wait()
		w.expect("calls before Remove", "+a1!", d.text())
		block := make(chan struct{})
		defer close(block) // the first call may have started before Remove
		late := w.Handle((&callLog{block: block}).handler(), nil)
		late.Remove()
		if err := late.WaitForSync(t.Context()); err != nil && listwatch.CodeOf(err) != listwatch.Unavailable {
			t.Errorf("WaitForSync of a removed handler: got %v, want %v", err, listwatch.Unavailable)
		}
	})
}

func TestSlowHandlerGetsNewestStates(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, slow, quick := newFixture(t, "a", "b", "x"), &callLog{block: make(chan struct{})}, &callLog{}
		r := w.Handle(slow.handler(), nil)
		w.Handle(quick.handler(), nil)
		w.run()
		synctest.Wait() // the first call of the slow handler blocks
		w.expect("calls of the quick handler", "+a1! +b1! +x1!", quick.take())
		for spec := range 1000 {
			w.put("a", spec+2)
		}
		for i := range 1000 { // the slow handler never sees these objects
			w.put(fmt.Sprint("n", i), 1)
			w.remove(fmt.Sprint("n", i))
		}
		w.remove("x")
		w.remove("a")
		w.put("a", 5)
		synctest.Wait()
		if n := r.Pending(); n != 2 {
			t.Errorf("%d calls are pending for the slow handler, want 2: for a and b", n)
		}
		if w.HasSynced() {
			t.Error("HasSynced() while a handler is blocked in the initial state")
		}
		close(slow.block)
		synctest.Wait()
		w.expect("calls of the slow handler", "+a1! +b1! -a1001 +a5", slow.text())
		if got := quick.text(); !strings.Contains(got, "-x1") || !strings.HasSuffix(got, "5") {
			t.Errorf("the quick handler got %q, want the deletion of x and finally a with spec 5", got)
		}
		if !w.HasSynced() {
			t.Error("HasSynced() is false after all handlers returned")
		}
	})
}

func TestBlockingHandlerMissesNothing(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, d := newFixture(t), &callLog{block: make(chan struct{})}
		w.Handle(d.handler(), &informer.HandlerOptions{MaxPending: 2})
		w.run()
		synctest.Wait()
		var want []string
		for i := range 20 {
			w.put(fmt.Sprint("n", i), 1)
			want = append(want, fmt.Sprintf("+n%d1", i))
			synctest.Wait()
		}
		if n := w.Len(); n > 4 {
			t.Errorf("the store holds %d objects while a handler with MaxPending 2 is blocked", n)
		}
		close(d.block)
		synctest.Wait()
		w.expect("calls", strings.Join(want, " "), d.text())
	})
}

func TestResyncReadsLocalStoreOnly(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w, d, never := newFixture(t, "a", "b"), &callLog{}, &callLog{}
		w.Resync = time.Minute
		w.Handle(d.handler(), nil)
		w.Handle(never.handler(), &informer.HandlerOptions{Resync: -1})
		w.run()
		synctest.Wait()
		d.take()
		time.Sleep(2*time.Minute + time.Second)
		synctest.Wait()
		w.expect("calls after two intervals", "a1= b1= a1= b1=", d.text())
		w.expect("calls without resync", "+a1! +b1!", never.text())
	})
}

func TestWaitForVersionReadsOwnWrites(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t).run()
		for spec := range 50 {
			if err := w.WaitForVersion(t.Context(), w.put("a", spec)); err != nil {
				t.Fatal(err)
			}
			if a, ok := w.Get(listwatch.Key{Name: "a"}); !ok || a.Spec != spec {
				t.Fatalf("after WaitForVersion: got %+v, %v; want spec %d", a, ok, spec)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.WaitForVersion(ctx, 1<<62); err != context.DeadlineExceeded {
			t.Errorf("waiting for a future version: got %v, want context.DeadlineExceeded", err)
		}
	})
}

func TestWaitForSeesDelete(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t, "a").run()
		if err := w.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		key := listwatch.Key{Name: "a"}
		old, _ := w.Get(key)
		done := make(chan error, 1)
		go func() {
			done <- w.WaitFor(t.Context(), key, func(now Thing, ok bool) bool { return !ok || now.UID != old.UID })
		}()
		w.put("a", 7)
		synctest.Wait()
		select {
		case err := <-done:
			t.Errorf("got %v before the delete", err)
		default:
		}
		w.remove("a")
		if err := <-done; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.WaitFor(ctx, key, func(_ Thing, ok bool) bool { return ok }); err != context.DeadlineExceeded {
			t.Errorf("got %v, want context.DeadlineExceeded", err)
		}
	})
}

func TestChangesYieldsChanges(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t, "a").run()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []string
		for c := range w.Changes(ctx, nil) {
			got = append(got, fmt.Sprintf("%s %s %d>%d %v", c.Type, c.Key, c.Old.Spec, c.New.Spec, c.Initial))
			switch len(got) {
			case 1:
				w.put("a", 2)
			case 2:
				w.remove("a")
			case 3:
				cancel()
			}
		}
		w.expect("changes", "added a 0>1 true|updated a 1>2 false|deleted a 2>2 false", strings.Join(got, "|"))
	})
}

func TestEmptyCollectionSyncs(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t)
		r := w.Handle((&callLog{}).handler(), nil)
		w.run()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.WaitForSync(ctx); err != nil || !r.HasSynced() || !w.HasSynced() {
			t.Errorf("WaitForSync: %v, handler synced: %v, informer synced: %v", err, r.HasSynced(), w.HasSynced())
		}
	})
}

func TestInformerRunsOnceAndNeedsSource(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		if err := new(informer.Informer[Thing]).Run(t.Context()); listwatch.CodeOf(err) != listwatch.Invalid {
			t.Errorf("no Source: got %v, want %v", err, listwatch.Invalid)
		}
		w := newFixture(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.Run(ctx); err != context.Canceled {
			t.Errorf("Run with a canceled context: got %v, want context.Canceled", err)
		}
		if err := w.Run(t.Context()); listwatch.CodeOf(err) != listwatch.Invalid {
			t.Errorf("second Run: got %v, want %v", err, listwatch.Invalid)
		}
		if err := w.WaitForSync(t.Context()); listwatch.CodeOf(err) != listwatch.Unavailable {
			t.Errorf("WaitForSync after Run: got %v, want %v", err, listwatch.Unavailable)
		}
		for range w.Changes(t.Context(), nil) {
			t.Error("Changes yields a change after Run has returned")
		}
		w.Handle((&callLog{}).handler(), nil)
	})
}
