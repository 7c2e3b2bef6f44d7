package informer_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/listwatchtest"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/typed"
)

// track makes w follow a Source that a test controls, and returns a collection whose writes w
// tracks. wrap, if not nil, changes the Store that performs the writes.
func (w *fixture) track(wrap func(listwatch.Store) listwatch.Store) (*listwatchtest.Source, typed.Collection[Thing]) {
	f, s := w.withFaults(), w.things.Store
	if wrap != nil {
		s = wrap(s)
	}
	return f, typed.Collection[Thing]{Store: w.Track(s)}
}

func named(name string, spec int) Thing {
	return Thing{Metadata: listwatch.Metadata{Name: name}, Spec: spec}
}

func TestTrackedWriteIsInTheNextRead(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t, "a")
		// Its watch must return before a probe fails, because the informer would then list.
		w.Backoff.Max = time.Second
		f, writes := w.track(nil)
		if _, err := writes.Create(t.Context(), named("early", 1)); err != nil {
			t.Fatal("before Run: ", err)
		}
		w.run()
		if err := w.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.Delay(time.Second)
		key := listwatch.Key{Name: "a"}
		for spec := range 20 {
			if _, err := writes.Update(t.Context(), key,
				func(a *Thing) error { a.Spec = 10 + spec; return nil }); err != nil {
				t.Fatal(err)
			}
			if a, _ := w.Get(key); a.Spec != 10+spec {
				t.Fatalf("after an update to %d: got %+v", 10+spec, a)
			}
			if spec%5 == 0 {
				f.Cut(nil)
			}
		}
		if _, err := writes.Delete(t.Context(), key, 0); err != nil {
			t.Fatal(err)
		}
		if a, ok := w.Get(key); ok {
			t.Errorf("after a delete: got %+v", a)
		}
		if n := len(f.Lists()); n != 0 {
			t.Errorf("the informer has sent %d lists, want none", n)
		}
	})
}

// A write outside of the selection has no event.
func TestTrackedWriteNeedsNoEvent(t *testing.T) {
	labels, err := listwatch.ParseLabelSelector("a=b")
	if err != nil {
		t.Fatal(err)
	}
	for name, selection := range map[string]listwatch.Selection{
		"selector":   {Labels: labels},
		"projection": {Projection: typed.Projection[struct{ listwatch.Metadata }]()},
	} {
		t.Run(name+" in process", func(t *testing.T) {
			withFakeTime(t, func(t *testing.T) {
				w := newFixture(t, "a")
				testWithoutEvents(t, w, w.things, selection)
			})
		})
		t.Run(name+" over HTTP", func(t *testing.T) {
			withFakeTime(t, func(t *testing.T) {
				w, n := newFixture(t, "a"), servertest.NewNetwork(t)
				n.Start("origin", w.things, servertest.Options{})
				remote := &client.Remote{URL: "http://origin/things", Network: n.Transport()}
				defer remote.Close()
				testWithoutEvents(t, w, remote, selection)
			})
		})
	}
}

func testWithoutEvents(t *testing.T, w *fixture, source listwatch.Source, s listwatch.Selection) {
	w.Informer = &informer.Informer[Thing]{Source: source, Selection: s}
	writes := typed.Collection[Thing]{Store: w.Track(w.things.Store)}
	w.run()
	if err := w.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-time.After(time.Minute)
		started := time.Now()
		now, err := writes.Update(t.Context(), listwatch.Key{Name: "a"}, func(a *Thing) error { a.Spec++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(started); took > 3*time.Second {
			t.Errorf("a write has taken %v, want at most 3 s", took)
		}
		if w.Version() < now.Version() {
			t.Errorf("the informer is at version %d, want %d", w.Version(), now.Version())
		}
	}
}

// A slowSource delays the events of its first watch.
type slowSource struct {
	listwatch.Source
	watches atomic.Int64
	delay   time.Duration
}

type slowWatcher struct {
	listwatch.Watcher
	delay time.Duration
}

func (s *slowSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.Source.Watch(ctx, q)
	if s.watches.Add(1) == 1 {
		w = slowWatcher{w, s.delay}
	}
	return w, err
}

func (s slowWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := s.Watcher.Next(ctx, dst)
	<-time.After(s.delay)
	return n, err
}

// A probe that ignored the events that it has seen would advance the informer too early.
func TestProbeWaitsForTheInformersOwnWatch(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t)
		source := &slowSource{Source: w.things, delay: 3 * time.Second}
		w.Informer = &informer.Informer[Thing]{Source: source, Selection: listwatch.Selection{Name: "a"}}
		w.run()
		if err := w.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for spec := range 10 {
			w.put("a", spec)
			if err := w.WaitForVersion(t.Context(), w.put("b", spec)); err != nil {
				t.Fatal(err)
			}
			if a, ok := w.Get(listwatch.Key{Name: "a"}); !ok || a.Spec != spec {
				t.Fatalf("got %+v, want spec %d", a, spec)
			}
		}
		if source.watches.Load() < 2 {
			t.Error("the informer has not probed")
		}
	})
}

// While the informer is disconnected, failures of probes say nothing about bookmarks.
func TestWaitDuringAnOutageListsNothing(t *testing.T) {
	for name, expire := range map[string]bool{"history": false, "no history": true} {
		t.Run(name, func(t *testing.T) {
			withFakeTime(t, func(t *testing.T) {
				w := newFixture(t, "a")
				f := w.withFaults()
				w.run()
				if err := w.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				f.Fail(errUnavailable)
				f.Cut(nil)
				time.AfterFunc(time.Minute, func() {
					if expire {
						if err := f.Expire(); err != nil {
							t.Error(err)
						}
					}
					f.Fail(nil)
				})
				if err := w.WaitForVersion(t.Context(), w.put("a", 2)); err != nil {
					t.Fatal(err)
				}
				if n := len(f.Lists()); n != 0 {
					t.Errorf("the informer has sent %d lists, want none", n)
				}
			})
		})
	}
}

// A kubernetesStore returns no object from Delete, and loses the responses to creates if lossy.
type kubernetesStore struct {
	listwatch.Store
	lossy bool
}

func (k kubernetesStore) Delete(ctx context.Context, key listwatch.Key, p listwatch.Preconditions) (*listwatch.Object,
	error,
) {
	_, err := k.Store.Delete(ctx, key, p)
	return nil, err
}

func (k kubernetesStore) Create(ctx context.Context, data []byte) (*listwatch.Object, error) {
	o, err := k.Store.Create(ctx, data)
	if err == nil && k.lossy {
		return nil, errUnavailable
	}
	return o, err
}

func TestWritesWithoutVersionAreInTheNextRead(t *testing.T) {
	kubernetes := func(s listwatch.Store) listwatch.Store { return kubernetesStore{s, true} }
	key := listwatch.Key{Name: "a"}
	for name, c := range map[string]struct {
		write func(context.Context, typed.Collection[Thing], listwatch.Version) error
		lists int
		want  bool // whether "a" exists afterwards
	}{
		"delete": {func(ctx context.Context, w typed.Collection[Thing], _ listwatch.Version) error {
			_, err := w.Delete(ctx, key, 0)
			return err
		}, 1, false},
		"delete of a version": {func(ctx context.Context, w typed.Collection[Thing], v listwatch.Version) error {
			_, err := w.Delete(ctx, key, v)
			return err
		}, 0, false},
		"create without a response": {func(ctx context.Context, w typed.Collection[Thing], _ listwatch.Version) error {
			if _, err := w.Create(ctx, named("b", 1)); !errors.Is(err, listwatch.Unavailable) {
				return errors.New("the create has succeeded")
			}
			return nil
		}, 1, true},
		"refused write": {func(ctx context.Context, w typed.Collection[Thing], _ listwatch.Version) error {
			if _, err := w.Create(ctx, named("a", 1)); !errors.Is(err, listwatch.AlreadyExists) {
				return errors.New("the create was not refused")
			}
			return nil
		}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			withFakeTime(t, func(t *testing.T) {
				w := newFixture(t)
				f, writes := w.track(kubernetes)
				v := w.put("a", 1)
				w.run()
				if err := w.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				f.Delay(time.Second)
				ctx, log := informer.WithWriteLog(t.Context())
				if err := c.write(ctx, writes, v); err != nil {
					t.Fatal(err)
				}
				if err := log.WaitForInformers(ctx); err != nil {
					t.Fatal(err)
				}
				if _, ok := w.Get(key); ok != c.want {
					t.Errorf("got a: %v, want %v", ok, c.want)
				}
				if got, want := w.Len(),
					func() int {
						all, _,
							_ := w.things.Items(t.Context(), listwatch.Query{})
						return len(all)
					}(); got != want {
					t.Errorf("the informer has %d objects, want %d", got, want)
				}
				if n := len(f.Lists()); n != c.lists {
					t.Errorf("got %d lists, want %d", n, c.lists)
				}
			})
		})
	}
}

func TestOwnWritesOfAnOldEpochAreNotAwaited(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		old := memory.New[Thing]() // its versions are lower
		time.Sleep(time.Hour)
		w := newFixture(t, "a")
		f, writes := w.track(nil)
		w.run()
		if err := w.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.Delay(time.Minute)
		ctx, log := informer.WithWriteLog(t.Context())
		if _, err := writes.Create(ctx, named("b", 1)); err != nil {
			t.Fatal(err)
		}
		if log.Len() != 1 {
			t.Errorf("the log names %d informers, want 1", log.Len())
		}
		f.Replace(old)
		f.Cut(errExpired)
		f.Delay(0)
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		if err := log.WaitForInformers(ctx); err != nil {
			t.Fatal(err)
		}
		if w.Len() != 0 || log.Len() != 0 {
			t.Errorf("got %d objects and a log of %d informers, want none", w.Len(), log.Len())
		}
	})
}

func TestUnreachableInformerEndsTheWait(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t, "a")
		f, writes := w.track(nil)
		w.run()
		if err := w.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.Fail(errUnavailable)
		f.Cut(nil)
		started := time.Now()
		o, err := writes.Store.Create(t.Context(), []byte(`{"metadata":{"name":"b"}}`))
		if !errors.Is(err, listwatch.NotYet) || !strings.Contains(err.Error(), "want "+o.Version.String()) {
			t.Errorf("got %v, want the code NotYet and the version", err)
		}
		if took := time.Since(started); took != informer.OwnWriteTimeout {
			t.Errorf("the write has taken %v, want %v", took, informer.OwnWriteTimeout)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		logged, log := informer.WithWriteLog(t.Context())
		if _, err := writes.Create(logged, named("c", 1)); err != nil {
			t.Error(err)
		}
		if err := log.WaitForInformers(ctx); err != context.Canceled || log.Len() != 1 {
			t.Errorf("with a context that has ended: got %v and %d informers", err, log.Len())
		}
	})
}
