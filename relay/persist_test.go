package relay_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/internal/servertest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/persist"
	"github.com/listwatch/listwatch/relay"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/watchcache"
)

// A savedRelay starts relays with the same copy, one after another.
type savedRelay struct {
	*testing.T
	source  listwatch.Source
	options persist.File
	current *relay.Relay
	reasons []string // the reasons for whole states, and "difference"
	saves   []persist.Saved
}

func newSavedRelay(t *testing.T, source listwatch.Source) *savedRelay {
	s := &savedRelay{T: t, source: source, options: persist.File{Path: filepath.Join(t.TempDir(), "copy")}}
	t.Cleanup(s.stop)
	return s
}

func (s *savedRelay) start() *relay.Relay {
	s.Helper()
	s.reasons, s.saves = nil, nil
	// A state that was listed for a backfill has no ID before the first bookmark.
	s.current = relay.Open(s.source,
		relay.Options{BackfillVersions: -1, CheckInterval: -1, Persist: s.options, Trace: &relay.Trace{
			Replaced: func(_ listwatch.Version, _ int, why string) { s.reasons = append(s.reasons, why) },
			Patched:  func(_, _ listwatch.Version) { s.reasons = append(s.reasons, "difference") },
			Saved:    func(saved persist.Saved) { s.saves = append(s.saves, saved) },
		}})
	synctest.Wait()
	return s.current
}

// received returns the reasons for the states that the relay has adopted.
func (s *savedRelay) received() string {
	synctest.Wait()
	return fmt.Sprint(s.reasons)
}

func (s *savedRelay) stop() {
	if s.current != nil {
		_ = s.current.Close() // it is always nil
	}
}

// read returns the name and color of each object that r has.
func read(t *testing.T, r listwatch.Source) (state []string) {
	t.Helper()
	for _, o := range mustList(t, r, listwatch.Query{Start: listwatch.StartAny}).Items {
		state = append(state, o.Key.Name+" "+o.Labels["color"])
	}
	return state
}

func TestRestartedRelayServesBeforeTheUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		upstream := newFaultySource(o)
		s := newSavedRelay(t, upstream)
		s.start()
		old := o.put("b", "red").Version
		o.put("b", "blue")
		o.remove("a") // without a bookmark, other changes of this version may follow
		synctest.Wait()
		s.stop()
		upstream.setDown(errDown)
		o.put("c", "red")
		r, began := s.start(), time.Now()
		if got := read(t, r); !slices.Equal(got, []string{"a red", "b blue"}) || time.Since(began) != 0 {
			t.Errorf("got %q after %v, want the state of the copy at once", got, time.Since(began))
		}
		if d := r.Describe(); d.Kind != "Thing" || d.Epoch != o.Describe().Epoch {
			t.Errorf("the relay describes %+v, want %+v", d, o.Describe())
		}
		// The copy includes the history.
		w := testkit.Watch(t, r, listwatch.Query{Start: listwatch.StartAt, Version: old})
		testkit.Read(t, w, 1)
		time.Sleep(downtime)
		upstream.setDown(nil)
		var got []string
		for _, e := range testkit.Read(t, w, 2) {
			got = append(got, fmt.Sprint(e.Type, " ", e.Object.Key.Name))
		}
		if fmt.Sprint(got) != "[DELETED a ADDED c]" {
			t.Errorf("got %q, want the changes since the copy", got)
		}
		if got := s.received(); got != "[saved]" {
			t.Errorf("the relay received %s, want only events", got)
		}
	})
}

// TestRestartedRelayFetchesWhatChanged counts the bytes that a restart costs, with the history of
// the upstream and after its end.
func TestRestartedRelayFetchesWhatChanged(t *testing.T) {
	for _, expired := range []bool{false, true} {
		t.Run(fmt.Sprint("expired=", expired), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, n := openOrigin(t), servertest.NewNetwork(t)
				for i := range 1000 {
					o.put(fmt.Sprint("o", i), "red")
				}
				n.Start("origin", o, servertest.Options{})
				var bytes atomic.Int64
				upstream := &client.Remote{URL: "http://origin/things", Network: n.CountingTransport(&bytes)}
				defer upstream.Close()
				s := newSavedRelay(t, upstream)
				defer s.stop()
				has := stateOf(t, s.start())
				s.stop()
				o.put("o1", "blue")
				o.remove("o2")
				if expired {
					o.db.Compact()
				}
				whole := bytes.Swap(0)
				r := s.start()
				time.Sleep(time.Second)
				if got := bytes.Load(); got > 4000 || whole < 100_000 {
					t.Errorf("the restart cost %d bytes, the first start %d", got, whole)
				}
				want := "[saved]"
				if expired {
					want = "[saved difference]"
				}
				if got := s.received(); got != want {
					t.Errorf("the relay received %s, want %s", got, want)
				}
				if lines, isDifference := since(t, r, has); !isDifference ||
					fmt.Sprint(lines) != "[ADDED o1 DELETED o2]" {
					t.Errorf("a reader received %v, a difference: %v", lines, isDifference)
				}
			})
		})
	}
}

// TestDamagedCopyMeansTheWholeState damages each byte, and cuts the file at each byte.
func TestDamagedCopyMeansTheWholeState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		s := newSavedRelay(t, o)
		s.start()
		o.put("b", "red")
		synctest.Wait()
		s.stop()
		whole, err := os.ReadFile(s.options.Path)
		if err != nil {
			t.Fatal(err)
		}
		s.source = noEpochBookmarks{o} // these relays save nothing
		check := func(what string, data []byte) {
			t.Helper()
			if err := os.WriteFile(s.options.Path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			r := s.start()
			if got := read(t, r); !slices.Equal(got, []string{"a red", "b red"}) || s.received() != "[first]" ||
				s.saves[0].Err == nil {
				t.Errorf("%s: got %q, received %v and saves %+v", what, got, s.received(), s.saves)
			}
			s.stop()
		}
		for i := range whole {
			check(fmt.Sprintf("byte %d", i), slices.Concat(whole[:i], []byte{whole[i] ^ 1}, whole[i+1:]))
			check(fmt.Sprintf("cut at %d", i), whole[:i])
		}
	})
}

// An upstreamWithout sends no epochs, as behind a proxy that removes unknown headers.
type upstreamWithout struct{ listwatch.Source }

// TestCopyOfAnotherHistoryIsNotContinued restarts a relay above an upstream whose versions have
// started over and overlap with the versions of the copy.
func TestCopyOfAnotherHistoryIsNotContinued(t *testing.T) {
	wrappers := map[string]func(listwatch.Source) listwatch.Source{
		"in the process":  func(s listwatch.Source) listwatch.Source { return s },
		"without a name":  func(s listwatch.Source) listwatch.Source { return upstreamWithout{s} },
		"over a network ": nil,
	}
	for name, wrap := range wrappers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := servertest.NewNetwork(t)
				open := func(version listwatch.Version, objects ...string) listwatch.Source {
					o := &origin{TB: t, db: memory.Open(memory.Options{StartVersion: version})}
					o.Collection = openCollection(t, o.db, "Thing")
					for _, name := range objects {
						o.put(name, "red")
					}
					if wrap != nil {
						return wrap(o)
					}
					n.Start("origin", o, servertest.Options{})
					remote := newRemote(n, "origin")
					t.Cleanup(func() { remote.Close() })
					return remote
				}
				s := newSavedRelay(t, open(100, "a", "b"))
				s.start()
				time.Sleep(2 * time.Minute)
				s.stop()
				s.source = open(100, "c", "d", "e")
				r := s.start()
				time.Sleep(10 * time.Second) // before the first bookmark
				if got := read(t, r); !slices.Equal(got, []string{"c red", "d red", "e red"}) {
					t.Errorf("got %q, received %s, want the state of the new upstream", got, s.received())
				}
			})
		})
	}
}

// A selecting Source shows the objects of one color, and does not say so in the epoch.
type selecting struct {
	listwatch.Source
	labels listwatch.LabelSelector
}

func (s selecting) Unwrap() listwatch.Source { return s.Source }

func (s selecting) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	q.Labels = s.labels
	return s.Source.List(ctx, q)
}

func (s selecting) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	q.Labels = s.labels
	return s.Source.Watch(ctx, q)
}

func TestCopyOfAnotherSelectionIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		o.put("b", "blue")
		only := func(color string) listwatch.Source {
			labels, err := listwatch.ParseLabelSelector("color=" + color)
			if err != nil {
				t.Fatal(err)
			}
			return selecting{o, labels}
		}
		s := newSavedRelay(t, only("red"))
		s.start()
		o.put("c", "red")
		time.Sleep(2 * time.Minute)
		s.stop()
		s.source = only("blue")
		r := s.start()
		time.Sleep(2 * time.Minute)
		if got := read(t, r); !slices.Equal(got, []string{"b blue"}) {
			t.Errorf("got %q, received %v, want the blue objects", got, s.received())
		}
	})
}

func TestUpstreamOfTheCopyMayNotChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, n := openOrigin(t), servertest.NewNetwork(t)
		o.put("a", "red")
		n.Start("origin", o, servertest.Options{})
		n.Start("other", o, servertest.Options{})
		s := newSavedRelay(t, newRemote(n, "origin"))
		s.start()
		s.stop()
		s.source = newRemote(n, "other")
		s.start()
		time.Sleep(time.Second)
		if got := s.received(); got != "[first]" {
			t.Errorf("the relay received %s, want the state of the other upstream", got)
		}
		s.stop()
	})
}

// A process may die between two changes of one version. Its copy must not claim that version.
func TestCopyEndsWithACompleteVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := watchcache.New(listwatch.Description{Kind: "Thing", APIVersion: "v1", Epoch: "one"},
			watchcache.Options{})
		if err := cache.Replace(nil, 1); err != nil {
			t.Fatal(err)
		}
		upstream := &halfSource{Source: cache}
		s := newSavedRelay(t, upstream)
		s.options.Interval = time.Second
		s.start()
		for v := listwatch.Version(2); v < 4; v++ {
			if err := cache.Apply(changesAt(t, v, 2)...); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		upstream.half.Store(true)
		if err := cache.Apply(changesAt(t, 4, 2)...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		s.stop()
		upstream.half.Store(false)
		r := s.start()
		time.Sleep(downtime)
		for _, o := range mustList(t, r, listwatch.Query{Start: listwatch.StartAny}).Items {
			if o.Version != 4 {
				t.Errorf("%s is at version %d, want 4", o.Key, o.Version)
			}
		}
	})
}

// A halfSource delivers only the first change of each version while half is true, and then stops.
type halfSource struct {
	listwatch.Source
	half atomic.Bool
}

func (h *halfSource) Unwrap() listwatch.Source { return h.Source }

func (h *halfSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := h.Source.Watch(ctx, q)
	return &halfWatcher{Watcher: w, source: h}, err
}

type halfWatcher struct {
	listwatch.Watcher
	source *halfSource
	done   bool
}

func (h *halfWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	if h.done && h.source.half.Load() {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	n, err := h.Watcher.Next(ctx, dst)
	if n > 0 && h.source.half.Load() {
		n, h.done = 1, true
	}
	return n, err
}

func TestCopyIsDroppedWithTheRightToRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		upstream := newFaultySource(o)
		for _, code := range []listwatch.Code{listwatch.Unauthorized, listwatch.Forbidden} {
			upstream.setDown(nil)
			s := newSavedRelay(t, upstream)
			s.start()
			o.put("a", "blue")
			synctest.Wait()
			s.stop()
			if _, err := os.Stat(s.options.Path); err != nil {
				t.Fatal(err)
			}
			s.start()
			upstream.setDown(&listwatch.Error{Code: code})
			time.Sleep(downtime)
			s.stop()
			if _, err := os.Stat(s.options.Path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%v: got %v, want no file", code, err)
			}
		}
	})
}

func TestRelaySavesSecretsOnlyOnRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		s := newSavedRelay(t, openCollection(t, o.db, "Secret"))
		for _, permitted := range []bool{false, true} {
			s.options.Secrets = permitted
			s.start()
			s.stop()
			if _, err := os.Stat(s.options.Path); (err == nil) != permitted {
				t.Errorf("permitted: %t, got %v and saves %+v", permitted, err, s.saves)
			}
		}
	})
}

// TestRandomRestartsLoseNothing kills relays at random moments: the next one starts with the copy
// that the file had then. A reader that resumes, and lists only after Expired, must end with the
// state of the origin.
func TestRandomRestartsLoseNothing(t *testing.T) {
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			o := openOrigin(t)
			s := newSavedRelay(t, o)
			s.options.Interval = 200 * time.Millisecond
			reader := follower{T: t, objects: map[string]string{}}
			resumed := 0
			for range 30 {
				r := s.start()
				w := reader.resume(r)
				time.Sleep(5 * time.Second) // the relay catches up
				if reader.follow(r, w) {
					resumed++
				}
				for range random.IntN(20) {
					name := string(rune('a' + random.IntN(8)))
					if _, err := o.Get(t.Context(), listwatch.Key{Namespace: "default", Name: name}); err == nil &&
						random.IntN(3) == 0 {
						o.remove(name)
					} else {
						o.put(name, fmt.Sprint(random.IntN(100)))
					}
					time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
				}
				if random.IntN(4) == 0 {
					o.db.Compact()
				}
				w = reader.resume(r)
				time.Sleep(time.Second)
				reader.follow(r, w)
				killed, err := os.ReadFile(s.options.Path)
				s.stop()
				if err == nil && random.IntN(2) == 0 {
					err = os.WriteFile(s.options.Path, killed, 0o600)
				}
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
			want := map[string]string{}
			for _, state := range read(t, o) {
				name, color, _ := strings.Cut(state, " ")
				want[name] = color
			}
			if !maps.Equal(reader.objects, want) || resumed < 10 {
				t.Errorf("seed %d: got %v, want %v; resumed %d times", seed, reader.objects, want, resumed)
			}
		})
	}
}

// A follower is a reader of relays.
type follower struct {
	*testing.T
	version listwatch.Version
	objects map[string]string
}

// resume returns a watch of r from the version of f, or nil if that has expired.
func (f *follower) resume(r *relay.Relay) listwatch.Watcher {
	f.Helper()
	w, err := r.Watch(f.Context(), listwatch.Query{
		Start: listwatch.StartAt, Version: f.version, InitialEvents: listwatch.InitialEventsNo,
	})
	if err != nil && !errors.Is(err, listwatch.Expired) {
		f.Fatal(err)
	}
	return w
}

// follow brings f to the state of r. It reads the events of w if w is not nil and has not expired.
func (f *follower) follow(r *relay.Relay, w listwatch.Watcher) (resumed bool) {
	f.Helper()
	if w != nil {
		err := f.drain(w)
		_ = w.Close() // it has been read
		if err == nil {
			return true
		}
		if !errors.Is(err, listwatch.Expired) {
			f.Fatal(err)
		}
	}
	page := mustList(f.T, r, listwatch.Query{})
	f.version = page.Version
	clear(f.objects)
	for _, o := range page.Items {
		f.objects[o.Key.Name] = o.Labels["color"]
	}
	return false
}

func (f *follower) drain(w listwatch.Watcher) error {
	for {
		var e [1]listwatch.Event
		n, err := w.(listwatch.Poller).Poll(e[:])
		if n == 0 || err != nil {
			f.version = max(f.version, w.(listwatch.Poller).Progress().Version)
			return err
		}
		name := e[0].Object.Key.Name
		if f.version = e[0].Version; e[0].Type == listwatch.Deleted {
			delete(f.objects, name)
			continue
		}
		if _, ok := f.objects[name]; ok != (e[0].Type == listwatch.Modified) {
			f.Errorf("%s %s, but the reader has it: %v", e[0].Type, name, ok)
		}
		f.objects[name] = e[0].Object.Labels["color"]
	}
}
