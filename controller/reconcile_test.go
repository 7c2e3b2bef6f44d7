package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/controller"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/listwatchtest"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/typed"
	"github.com/listwatch/listwatch/workqueue"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

type App struct {
	listwatch.Metadata `json:"metadata"`
	Team               string `json:"team,omitempty"`
}

func keyOf(name string) listwatch.Key { return listwatch.Key{Name: name} }

// A fixture holds a store, an informer of the store, and a log of calls. run starts the informer.
type fixture struct {
	*testing.T
	store typed.Collection[App]
	apps  *informer.Informer[App]
	start time.Time

	mu    sync.Mutex
	calls []string // guarded by mu
}

// inBubble calls f in a synctest bubble with a fixture whose store holds the named apps.
func inBubble(t *testing.T, f func(*fixture), names ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := &fixture{T: t, store: memory.New[App](), start: time.Now()}
		x.apps = &informer.Informer[App]{Source: x.store}
		for _, name := range names {
			x.put(name, "")
		}
		f(x)
	})
}

// put creates the app, or changes its team.
func (x *fixture) put(name, team string) {
	x.Helper()
	_, err := x.store.Update(x.Context(), keyOf(name), func(a *App) error { a.Team = team; return nil })
	if errors.Is(err, listwatch.NotFound) {
		_, err = x.store.Create(x.Context(), App{Metadata: listwatch.Metadata{Name: name}, Team: team})
	}
	if err != nil {
		x.Fatal(err)
	}
}

func (x *fixture) remove(name string) {
	x.Helper()
	if _, err := x.store.Delete(x.Context(), keyOf(name), 0); err != nil {
		x.Fatal(err)
	}
}

// run starts the informer and Reconcile, and returns a function that ends both and returns the
// result of Reconcile.
func (x *fixture) run(f func(context.Context, listwatch.Key) error, o controller.Options[App]) (stop func() error) {
	ctx, cancel := context.WithCancel(x.Context())
	result := make(chan error, 1)
	go func() { _ = x.apps.Run(ctx) }()
	go func() { result <- controller.Reconcile(ctx, x.apps, f, o) }()
	return func() error {
		cancel()
		return <-result
	}
}

func (x *fixture) log(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls = append(x.calls, fmt.Sprintf(format, args...))
}

// expect waits until all goroutines are blocked, compares the log with want, and empties the log.
func (x *fixture) expect(when string, want ...string) {
	x.Helper()
	synctest.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	if !slices.Equal(x.calls, want) {
		x.Errorf("%s: got the calls %q, want %q", when, x.calls, want)
	}
	x.calls = nil
}

func TestReconcileSeesEveryChange(t *testing.T) {
	inBubble(t, func(x *fixture) {
		stop := x.run(func(_ context.Context, key listwatch.Key) error {
			app, ok := x.apps.Get(key)
			x.log("%s %v %s", key, ok, app.Team)
			return nil
		}, controller.Options[App]{})
		x.expect("at the start", "a true ", "b true ")
		x.put("b", "ada")
		x.expect("after an update", "b true ada")
		x.put("c", "")
		x.expect("after a create", "c true ")
		x.remove("b")
		x.expect("after a delete", "b false ")
		if err := stop(); err != context.Canceled {
			t.Errorf("Reconcile returned %v, want the error of its context", err)
		}
		x.put("d", "")
		x.expect("after the end")
	}, "a", "b")
}

func TestNoCallStartsBeforeTheSync(t *testing.T) {
	inBubble(t, func(x *fixture) {
		block := make(chan struct{})
		x.apps.Handle(informer.Handler[App]{OnAdd: func(App, bool) { <-block }}, nil)
		stop := x.run(func(_ context.Context, key listwatch.Key) error {
			x.log("%s of %d", key, x.apps.Len())
			return nil
		}, controller.Options[App]{})
		x.expect("before the sync")
		close(block)
		x.expect("after the sync", "a of 2", "b of 2")
		_ = stop()
	}, "a", "b")
}

func TestChangesDuringACallCauseOneMoreCall(t *testing.T) {
	inBubble(t, func(x *fixture) {
		proceed := make(chan struct{})
		stop := x.run(func(_ context.Context, key listwatch.Key) error {
			app, _ := x.apps.Get(key)
			x.log("%s %s", key, app.Team)
			<-proceed
			return nil
		}, controller.Options[App]{Concurrency: 3})
		x.expect("at the start", "a ")
		for n := range 5 {
			x.put("a", fmt.Sprint(n))
			synctest.Wait()
		}
		x.expect("during the call")
		proceed <- struct{}{}
		x.expect("after the call", "a 4")
		close(proceed)
		x.expect("at the end")
		_ = stop()
	}, "a")
}

func TestConcurrencyLimitsTheCalls(t *testing.T) {
	for _, tt := range []struct{ concurrency, want int }{{-1, 1}, {0, 1}, {1, 1}, {3, 3}, {100, 5}} {
		inBubble(t, func(x *fixture) {
			block := make(chan struct{})
			stop := x.run(func(_ context.Context, key listwatch.Key) error {
				x.log("%s", key)
				<-block
				return nil
			}, controller.Options[App]{Concurrency: tt.concurrency})
			synctest.Wait()
			x.mu.Lock()
			if got := len(x.calls); got != tt.want {
				t.Errorf("Concurrency %d: got %d calls at the same time, want %d", tt.concurrency, got, tt.want)
			}
			x.mu.Unlock()
			close(block)
			synctest.Wait()
			_ = stop()
		}, "a", "b", "c", "d", "e")
	}
}

func TestFailedCallsAreRetried(t *testing.T) {
	inBubble(t, func(x *fixture) {
		overloaded := &listwatch.Error{
			Code:    listwatch.Unavailable,
			Details: &listwatch.Details{RetryAfter: time.Minute},
		}
		results := []error{
			errors.New("one"), errors.New("two"), fmt.Errorf("three: %w", overloaded), nil,
			errors.New("four"), nil,
		}
		stop := x.run(func(context.Context, listwatch.Key) error {
			err := results[0]
			results = results[1:]
			x.log("%v: %v", time.Since(x.start), err)
			return err
		}, controller.Options[App]{Called: func(c controller.Call) {
			if c.Err != nil {
				x.log("%s in %v", c.Key, c.Retry)
			}
		}})
		time.Sleep(time.Hour)
		x.expect("until it succeeds",
			"0s: one", "a in 5ms",
			"5ms: two", "a in 10ms",
			"15ms: three: unavailable", "a in 1m0s",
			"1m0.015s: <nil>")
		x.put("a", "ada")
		time.Sleep(time.Hour)
		x.expect("after a success", "1h0m0s: four", "a in 5ms", "1h0m0.005s: <nil>")
		_ = stop()
	}, "a")
}

func TestChangesWhileDisconnectedAreReconciled(t *testing.T) {
	inBubble(t, func(x *fixture) {
		source := listwatchtest.New(x.store)
		x.apps = &informer.Informer[App]{Source: source}
		stop := x.run(func(_ context.Context, key listwatch.Key) error {
			app, ok := x.apps.Get(key)
			x.log("%s %v %s", key, ok, app.Team)
			return nil
		}, controller.Options[App]{})
		x.expect("at the start", "a true ", "b true ", "c true ")
		source.Fail(errors.New("the server is down"))
		source.Cut(nil)
		x.put("a", "ada")
		x.remove("b")
		x.expect("while disconnected")
		if err := source.Expire(); err != nil {
			t.Fatal(err)
		}
		source.Fail(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		x.mu.Lock()
		slices.Sort(x.calls) // a relist does not keep the order of the changes
		x.mu.Unlock()
		x.expect("after the relist", "a true ada", "b false ")
		_ = stop()
	}, "a", "b", "c")
}

func TestQueueOptionAddsKeys(t *testing.T) {
	inBubble(t, func(x *fixture) {
		q := &workqueue.Queue[listwatch.Key]{MinDelay: time.Hour}
		failed := false
		stop := x.run(func(_ context.Context, key listwatch.Key) error {
			x.log("%s at %v", key, time.Since(x.start))
			if key.Name == "poll" {
				q.AddAfter(key, time.Minute)
				return nil
			}
			failed = !failed
			if failed {
				return errors.New("once")
			}
			return nil
		}, controller.Options[App]{Queue: q})
		x.expect("at the start", "a at 0s")
		q.Add(keyOf("poll"))
		time.Sleep(150 * time.Second)
		x.expect("polls", "poll at 0s", "poll at 1m0s", "poll at 2m0s")
		_ = stop()
		q.Add(keyOf("late"))
		if n := q.Len(); n != 0 {
			t.Errorf("the queue accepts keys after the end: it holds %d", n)
		}
	}, "a")
}

func TestReconcileDrainsWhenContextEnds(t *testing.T) {
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		want    string // how the call ends
	}{
		{"zero ends the calls' context at once", 0, "a: context canceled after 0s"},
		{"timeout in the middle of the call", time.Minute, "a: context canceled after 1m0s"},
		{"timeout after the call", 2 * time.Hour, "a: <nil> after 1h0m0s"},
		{"negative never ends the calls' context", -1, "a: <nil> after 1h0m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(x *fixture) {
				stop := x.run(func(ctx context.Context, key listwatch.Key) error {
					select {
					case <-ctx.Done():
					case <-time.After(time.Hour):
					}
					x.log("%s: %v after %v", key, ctx.Err(), time.Since(x.start))
					return ctx.Err()
				}, controller.Options[App]{DrainTimeout: tt.timeout})
				synctest.Wait()
				if err := stop(); err != context.Canceled {
					t.Errorf("Reconcile returned %v, want the error of its context", err)
				}
				x.expect("only the call in progress", tt.want)
			}, "a", "b", "c")
		})
	}
}

func TestReconcileEndsWithItsInformer(t *testing.T) {
	inBubble(t, func(x *fixture) {
		ctx, cancel := context.WithCancel(x.Context())
		go func() { _ = x.apps.Run(ctx) }()
		result := make(chan error, 1)
		go func() {
			result <- controller.Reconcile(x.Context(), x.apps, func(ctx context.Context, key listwatch.Key) error {
				<-ctx.Done()
				x.log("%s: %v", key, ctx.Err())
				return ctx.Err()
			}, controller.Options[App]{})
		}()
		synctest.Wait()
		cancel()
		if err := <-result; !errors.Is(err, listwatch.Unavailable) {
			t.Errorf("Reconcile returned %v, want an error of code Unavailable", err)
		}
		x.expect("the call in progress ends", "a: context canceled")
		if err := controller.Reconcile(x.Context(), x.apps, nil, controller.Options[App]{}); !errors.Is(err,
			listwatch.Unavailable) {
			t.Errorf("Reconcile of an informer that has ended returned %v, want an error of code Unavailable", err)
		}
	}, "a", "b")
	err := controller.Reconcile(t.Context(), &informer.Informer[App]{}, nil, controller.Options[App]{})
	if !errors.Is(err, listwatch.Invalid) {
		t.Errorf("Reconcile of an informer without a Source returned %v, want an error of code Invalid", err)
	}
}

// takeAll empties q and logs its keys.
func (x *fixture) takeAll(q *workqueue.Queue[listwatch.Key]) {
	x.Helper()
	synctest.Wait()
	for q.Len() > 0 {
		key, err := q.Get(x.Context())
		if err != nil {
			x.Fatal(err)
		}
		x.log("%s", key)
		q.Done(key)
	}
}

func TestEnqueueAddsKeysBeforeAndAfter(t *testing.T) {
	inBubble(t, func(x *fixture) {
		var q workqueue.Queue[listwatch.Key]
		controller.Enqueue(x.apps, &q, func(a App) []listwatch.Key { return []listwatch.Key{keyOf(a.Team)} })
		ctx, cancel := context.WithCancel(x.Context())
		defer cancel()
		go func() { _ = x.apps.Run(ctx) }()
		x.put("a", "ada")
		x.takeAll(&q)
		x.expect("after the create", "ada")
		x.put("a", "bob")
		x.takeAll(&q)
		x.expect("after the update", "ada", "bob")
		x.remove("a")
		x.takeAll(&q)
		x.expect("after the delete", "bob")
	})
}

func TestEnqueueMissesNoState(t *testing.T) {
	inBubble(t, func(x *fixture) {
		var q workqueue.Queue[listwatch.Key]
		block := make(chan struct{})
		controller.Enqueue(x.apps, &q, func(a App) []listwatch.Key {
			<-block
			return []listwatch.Key{keyOf(a.Team)}
		})
		ctx, cancel := context.WithCancel(x.Context())
		defer cancel()
		go func() { _ = x.apps.Run(ctx) }()
		for _, team := range []string{"ada", "bob", "cyd", "dee"} {
			x.put("a", team)
			synctest.Wait() // the local store now holds this team
		}
		close(block)
		x.takeAll(&q)
		x.expect("every team", "ada", "bob", "cyd", "dee")
	})
}

func TestIgnoreSkipsOnlyUpdates(t *testing.T) {
	inBubble(t, func(x *fixture) {
		x.apps.Resync = time.Hour
		stop := x.run(func(_ context.Context, key listwatch.Key) error { x.log("%s", key); return nil },
			controller.Options[App]{
				Ignore: func(old, value App) bool { return old.Generation == value.Generation },
			})
		x.expect("at the start", "a")
		annotate := func(a *App) error { a.Annotations = map[string]string{"note": "1"}; return nil }
		if _, err := x.store.Update(x.Context(), keyOf("a"), annotate); err != nil {
			x.Fatal(err)
		}
		x.expect("after an update of the metadata")
		x.put("a", "red")
		x.expect("after an update of the team", "a")
		time.Sleep(time.Hour)
		x.expect("at the resync", "a")
		x.remove("a")
		x.expect("after the delete", "a")
		if err := stop(); !errors.Is(err, context.Canceled) {
			x.Error(err)
		}
	}, "a")
}

// A program that may read only some namespaces has an informer for each of them.
func TestReconcileReadsSeveralInformers(t *testing.T) {
	inBubble(t, func(x *fixture) {
		other := memory.New[App]()
		also := &informer.Informer[App]{Source: other}
		stop := x.run(func(_ context.Context, key listwatch.Key) error { x.log("%s", key); return nil },
			controller.Options[App]{
				Also: []*informer.Informer[App]{also},
			})
		x.expect("before the second informer has synced")
		ctx, cancel := context.WithCancel(x.Context())
		defer cancel()
		go func() { _ = also.Run(ctx) }()
		x.expect("after the sync", "a")
		if _, err := other.Create(x.Context(), App{Metadata: listwatch.Metadata{Name: "b"}}); err != nil {
			x.Fatal(err)
		}
		x.put("a", "red")
		synctest.Wait()
		x.mu.Lock()
		slices.Sort(x.calls)
		x.mu.Unlock()
		x.expect("after a change in each", "a", "b")
		cancel() // Reconcile ends when one of the informers does
		synctest.Wait()
		if err := stop(); !errors.Is(err, listwatch.Unavailable) {
			x.Errorf("got %v, want Unavailable", err)
		}
	}, "a")
}
