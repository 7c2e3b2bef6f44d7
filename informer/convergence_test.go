package informer_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/informer"
	"github.com/listwatch/listwatch/internal/racetest"
	"github.com/listwatch/listwatch/listwatchtest"
)

// sorted returns the words of a line in alphabetical order.
func sorted(line string) string {
	words := strings.Fields(line)
	slices.Sort(words)
	return strings.Join(words, " ")
}

// A handlerModel applies the calls of a handler to a map. It records calls that contradict
// the map.
type handlerModel struct {
	mu         sync.Mutex
	objects    map[string]Thing
	violations []string
	pause      func()
}

func (h *handlerModel) handler() informer.Handler[Thing] {
	return informer.Handler[Thing]{
		OnAdd: func(t Thing, _ bool) {
			h.pause()
			h.observe(t, func(was Thing, known bool) bool { return !known })
		},
		OnUpdate: func(old, t Thing) {
			h.pause()
			h.observe(t, func(was Thing, known bool) bool {
				again := old.Version() == t.Version() // a resync
				return known && was.Version() == old.Version() && (again || t.Version() > was.Version())
			})
		},
		OnDelete: func(g informer.Deleted[Thing]) {
			h.pause()
			h.mu.Lock()
			defer h.mu.Unlock()
			if was, known := h.objects[g.Key.Name]; !known || g.Version < was.Version() {
				h.violations = append(h.violations,
					fmt.Sprintf("OnDelete of %s at version %d, but the last state was %+v", g.Key, g.Version, was))
			}
			delete(h.objects, g.Key.Name)
		},
	}
}

func (h *handlerModel) observe(t Thing, right func(was Thing, known bool) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if was, known := h.objects[t.Name]; !right(was, known) {
		h.violations = append(h.violations,
			fmt.Sprintf("call for %s at version %d, but the last state was %+v", t.Name, t.Version(), was))
	}
	h.objects[t.Name] = t
}

// A listOnlySource cannot stream its initial state.
type listOnlySource struct{ *listwatchtest.Source }

func (l listOnlySource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if q.InitialEvents == listwatch.InitialEventsYes {
		return nil, &listwatch.Error{Code: listwatch.Unsupported}
	}
	return l.Source.Watch(ctx, q)
}

// After random writes and faults, the store and each handler must have the state of the
// source, however slow the handlers are.
func TestStoreAndHandlersConverge(t *testing.T) {
	for range racetest.Rounds(60) {
		seed := rand.Uint64()
		withFakeTime(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			w := newFixture(t, "a", "b", "c")
			f := w.withFaults()
			w.Conflate = time.Duration(rng.IntN(2)-1) * time.Second
			w.Resync = time.Duration(rng.IntN(2)*rng.IntN(60)) * time.Second
			if rng.IntN(3) == 0 {
				w.Source, w.PageSize = listOnlySource{f}, 2
			}
			var replays []*handlerModel
			handle := func() {
				r := &handlerModel{objects: map[string]Thing{}, pause: func() {}}
				if rng.IntN(2) == 0 {
					r.pause = func() { time.Sleep(time.Second) }
				}
				at := w.Handle(r.handler(), &informer.HandlerOptions{MaxPending: rng.IntN(2) * 3})
				if len(replays) > 2 && rng.IntN(2) == 0 {
					at.Remove()
					return
				}
				replays = append(replays, r)
			}
			handle()
			handle()
			w.run()
			for range 150 {
				w.randomStep(rng, f, handle)
			}
			f.Fail(nil)
			last := w.put("a", -1)
			if err := w.WaitForVersion(t.Context(), last); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			w.compare(seed, replays)
		})
	}
}

func (w *fixture) randomStep(rng *rand.Rand, f *listwatchtest.Source, handle func()) {
	name := string(rune('a' + rng.IntN(8)))
	switch n := rng.IntN(20); {
	case n < 10:
		w.put(name, rng.IntN(1000))
	case n < 14:
		if _, err := w.things.Get(w.t.Context(), listwatch.Key{Name: name}); err == nil {
			w.remove(name)
		}
	case n == 14:
		f.Fail([]error{nil, errUnavailable}[rng.IntN(2)])
		if end := []error{io.EOF, errUnavailable, errExpired}[rng.IntN(3)]; end != errExpired {
			f.Cut(end)
		} else if err := f.Expire(); err != nil {
			w.t.Fatal(err)
		}
	case n == 15:
		f.Fail(nil)
	case n == 16 && rng.IntN(4) == 0:
		handle()
	case n == 17:
		<-time.After(time.Duration(rng.IntN(60)) * time.Second)
	default:
		synctest.Wait()
	}
}

// compare compares the store and the handler models with a list.
func (w *fixture) compare(seed uint64, replays []*handlerModel) {
	w.t.Helper()
	things, _, err := w.things.Items(w.t.Context(), listwatch.Query{})
	if err != nil {
		w.t.Fatal(err)
	}
	stored, err := w.List(listwatch.Query{})
	if err != nil {
		w.t.Fatal(err)
	}
	if diff := cmp.Diff(things, stored); diff != "" {
		w.t.Errorf("seed %d: the store differs from a list (-list +store):\n%s", seed, diff)
	}
	want := map[string]Thing{}
	for _, t := range things {
		want[t.Name] = t
	}
	for n, r := range replays {
		r.mu.Lock()
		if diff := cmp.Diff(want, r.objects); diff != "" {
			w.t.Errorf("seed %d: handler %d has another state (-list +handler):\n%s", seed, n, diff)
		}
		if len(r.violations) > 0 {
			w.t.Errorf("seed %d: handler %d got a wrong %s", seed, n, strings.Join(r.violations, "\nand "))
		}
		r.mu.Unlock()
	}
}
