package informer_test

import (
	"context"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/typed"

	"github.com/listwatch/listwatch/store"
)

// A silentSource sends no bookmarks except at the end of initial events, as a kube-apiserver does
// for events. Its watches last for lifetime, and their events are late by up to delay.
type silentSource struct {
	listwatch.Source
	lifetime, delay time.Duration
}

func (s silentSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return &silentWatcher{w, s.delay, time.Now().Add(s.lifetime)}, nil
}

type silentWatcher struct {
	listwatch.Watcher
	delay time.Duration
	end   time.Time
}

func (s *silentWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	limited, cancel := context.WithDeadline(ctx, s.end)
	defer cancel()
	for {
		n, err := s.Watcher.Next(limited, dst[:1])
		if err != nil && ctx.Err() == nil && limited.Err() != nil {
			err = io.EOF
		}
		if n > 0 && dst[0].Type == listwatch.Bookmark {
			n = 0
		}
		if n > 0 && s.delay > 0 {
			select {
			case <-time.After(rand.N(s.delay)):
			case <-ctx.Done():
			}
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func TestProgressNeedsNoBookmark(t *testing.T) {
	for name, conflate := range map[string]time.Duration{"events": 0, "conflated": time.Second} {
		t.Run(name, func(t *testing.T) {
			withFakeTime(t, func(t *testing.T) {
				db := memory.Open(memory.Options{})
				things, err := db.Collection(store.SpecOf[Thing]())
				if err != nil {
					t.Fatal(err)
				}
				other, err := db.Collection(store.CollectionSpec{Kind: "Other"})
				if err != nil {
					t.Fatal(err)
				}
				w := newFixture(t)
				w.Informer = &informer.Informer[Thing]{
					Source: silentSource{things, 3 * time.Second, 0}, MaxLag: 20 * time.Second, Conflate: conflate,
				}
				writes := typed.Collection[Thing]{Store: w.Track(things)}
				w.run()
				if err := w.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := writes.Create(t.Context(), Thing{Metadata: listwatch.Metadata{Name: "a"}}); err != nil {
					t.Fatal(err)
				}
				for second := range 300 {
					written, err := other.Create(t.Context(), []byte(`{"metadata":{"generateName":"x-"}}`))
					if err != nil {
						t.Fatal(err)
					}
					if _, err := w.List(listwatch.Query{}); err != nil {
						t.Fatalf("after %d s: %v", second, err)
					}
					if second%60 == 59 {
						ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
						if err := w.WaitForVersion(ctx, written.Version); err != nil {
							t.Errorf("WaitForVersion: %v", err)
						}
						cancel()
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}

// While events are late, a list may show less than has happened, such as an object that was created
// and deleted again.
func TestComparisonWaitsForLateEvents(t *testing.T) {
	withFakeTime(t, func(t *testing.T) {
		w := newFixture(t, "a", "b")
		w.Informer = &informer.Informer[Thing]{Source: silentSource{w.things, time.Hour, time.Second}}
		w.run()
		if err := w.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		for spec := range 300 {
			name := []string{"a", "b", "c", "d"}[rng.IntN(4)]
			version := w.put(name, spec)
			if rng.IntN(2) == 0 {
				version = w.remove(name)
			}
			<-time.After(time.Duration(rng.IntN(3)) * time.Second)
			if err := w.WaitForVersion(t.Context(), version); err != nil {
				t.Fatal(err)
			}
			page, err := w.things.Store.List(t.Context(), listwatch.Query{})
			if err != nil {
				t.Fatal(err)
			}
			if w.Len() != len(page.Items) {
				t.Fatalf("step %d: the informer has %d objects, want %d", spec, w.Len(), len(page.Items))
			}
			for _, o := range page.Items {
				if item, ok := w.Item(o.Key); !ok || item.Version != o.Version {
					t.Fatalf("step %d: %v is %v, want version %d", spec, o.Key, item, o.Version)
				}
			}
		}
	})
}
