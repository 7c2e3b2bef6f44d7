package watchcache_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

// A groupFixture is a group of two caches, whose objects are named by one letter.
type groupFixture struct {
	*testing.T
	group watchcache.Group
	a, b  *watchcache.Cache
}

// newGroup returns a group at version 10, in which cache a has the object x.
func newGroup(t *testing.T) *groupFixture {
	t.Helper()
	f := &groupFixture{T: t}
	f.a = f.group.Cache(listwatch.Description{Kind: "A"}, watchcache.Options{})
	f.b = f.group.Cache(listwatch.Description{Kind: "B"}, watchcache.Options{})
	f.check(f.group.Replace(10, map[*watchcache.Cache][]*listwatch.Object{f.a: {f.object("x", 9)}}))
	return f
}

func (f *groupFixture) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *groupFixture) object(name string, v listwatch.Version) *listwatch.Object {
	f.Helper()
	o, err := listwatch.NewObject(fmt.Appendf(nil, `{"metadata":{"name":%q}}`, name), v, nil)
	f.check(err)
	return o
}

func (f *groupFixture) put(name string, v listwatch.Version) watchcache.Change {
	f.Helper()
	return watchcache.Change{Object: f.object(name, v)}
}

// watch opens a watch of s after version v.
func (f *groupFixture) watch(s listwatch.Source, v listwatch.Version) listwatch.Watcher {
	f.Helper()
	w, err := s.Watch(f.Context(), listwatch.Query{Start: listwatch.StartAt, Version: v})
	f.check(err)
	f.Cleanup(func() { _ = w.Close() })
	return w
}

// next returns the next n events of w, such as "ADDED y@11".
func (f *groupFixture) next(w listwatch.Watcher, n int) (events []string) {
	f.Helper()
	var batch [1]listwatch.Event
	for range n {
		_, err := w.Next(f.Context(), batch[:])
		f.check(err)
		events = append(events, fmt.Sprintf("%s %s@%d", batch[0].Type, batch[0].Object.Key, batch[0].Version))
	}
	return events
}

func (f *groupFixture) want(got []string, want ...string) {
	f.Helper()
	if !slices.Equal(got, want) {
		f.Errorf("got %q, want %q", got, want)
	}
}

type changes = map[*watchcache.Cache][]watchcache.Change

// A client that was cut inside a transaction resumes at its next change, in each cache and in the
// union of both.
func TestTransactionsOfAGroupCanBeResumedInside(t *testing.T) {
	f := newGroup(t)
	union, err := f.a.Union(listwatch.Part{Source: f.a}, listwatch.Part{Source: f.b})
	f.check(err)
	all, inA, inB := f.watch(union, 10), f.watch(f.a, 10), f.watch(f.b, 10)
	f.check(f.group.Apply(20, changes{
		f.a: {f.put("y", 17), {Key: listwatch.Key{Name: "x"}, Version: 19}, f.put("y", 20)}, f.b: {f.put("z", 18)},
	}))
	f.want(f.next(all, 4), "ADDED y@17", "ADDED z@18", "DELETED x@19", "MODIFIED y@20")
	f.want(f.next(inA, 3), "ADDED y@17", "DELETED x@19", "MODIFIED y@20")
	f.want(f.next(inB, 1), "ADDED z@18")
	f.want(f.next(f.watch(union, 17), 3), "ADDED z@18", "DELETED x@19", "MODIFIED y@20")
	f.want(f.next(f.watch(f.a, 18), 2), "DELETED x@19", "MODIFIED y@20")
	for _, c := range []*watchcache.Cache{f.a, f.b} {
		if page, err := c.List(t.Context(), listwatch.Query{}); err != nil || page.Version != 20 {
			t.Errorf("a list has version %d (%v), want that of the transaction", page.Version, err)
		}
	}
}

// A client that was cut off between changes of one version cannot know whether it has seen all of
// them, so it cannot resume there. The last version of a transaction is also that of the state.
func TestNothingStartsAtASharedVersion(t *testing.T) {
	f := newGroup(t)
	open := f.watch(f.b, 10)
	f.check(f.group.Apply(20, changes{f.a: {f.put("y", 15), f.put("z", 20)}, f.b: {f.put("w", 15), f.put("x", 17)}}))
	f.want(f.next(open, 2), "ADDED w@15", "ADDED x@17")
	f.want(f.next(f.watch(f.b, 14), 2), "ADDED w@15", "ADDED x@17")
	f.want(f.next(f.watch(f.b, 16), 1), "ADDED x@17")
	for _, c := range []*watchcache.Cache{f.a, f.b} {
		w, err := c.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 15})
		if !errors.Is(err, listwatch.Expired) {
			t.Errorf("a watch from the shared version got %v and %v, want Expired", w, err)
		}
	}
	f.check(f.group.Apply(30, changes{f.a: {f.put("v", 30), f.put("w", 30)}}))
	f.watch(f.a, 30)
}

// After a gap, open watches continue with the difference. Nothing can start between the states
// before and after it, because another replica may have shown more there.
func TestNothingStartsInsideAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGroup(t)
		open, waiting := f.watch(f.a, 10), f.watch(f.a, 15)
		f.check(f.group.Skip(20, changes{f.a: {f.put("y", 1), {Key: listwatch.Key{Name: "x"}, Version: 1}}}))
		f.want(f.next(open, 2), "DELETED x@11", "ADDED y@11")
		f.want(f.next(f.watch(f.a, 10), 2), "DELETED x@11", "ADDED y@11")
		var batch [1]listwatch.Event
		if _, err := waiting.Next(t.Context(), batch[:]); !errors.Is(err, listwatch.Expired) {
			t.Errorf("a watch that waited for a version in the gap got %v and %v, want Expired", batch[0], err)
		}
		union, err := f.a.Union(listwatch.Part{Source: f.a}, listwatch.Part{Source: f.b})
		f.check(err)
		for v := listwatch.Version(11); v < 20; v++ {
			for _, s := range []listwatch.Source{f.a, f.b, union} {
				q := listwatch.Query{Start: listwatch.StartAt, Version: v}
				if w, err := s.Watch(t.Context(), q); err == nil {
					if _, err = w.Next(t.Context(), batch[:]); !errors.Is(err, listwatch.Expired) {
						t.Errorf("a watch of %T from %d got %v, want Expired", s, v, err)
					}
					_ = w.Close()
				} else if !errors.Is(err, listwatch.Expired) {
					t.Errorf("a watch of %T from %d: got %v, want Expired", s, v, err)
				}
				q.Match = listwatch.MatchExact
				if _, err := s.List(t.Context(), q); !errors.Is(err, listwatch.Expired) {
					t.Errorf("a list of %T at %d: got %v, want Expired", s, v, err)
				}
			}
		}
		f.check(f.group.Apply(21, changes{f.a: {f.put("w", 21)}}))
		f.want(f.next(open, 1), "ADDED w@21")
		f.want(f.next(f.watch(f.a, 20), 1), "ADDED w@21")
	})
}

// An object counts as unchanged since a version only if the group knows the state at that version.
// A gap after the version does not matter if the object is not a part of the difference.
func TestUnchangedSince(t *testing.T) {
	f := newGroup(t)
	f.group.Advance(20)
	check := func(name string, want ...listwatch.Version) {
		t.Helper()
		var got []listwatch.Version
		for _, v := range []listwatch.Version{8, 9, 10, 20, 21, 22, 29, 30, 31} {
			if f.group.UnchangedSince(f.a.Lookup(listwatch.Key{Name: name}), v) {
				got = append(got, v)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: unchanged since %v, want %v", name, got, want)
		}
	}
	check("x", 10, 20)
	f.check(f.group.Skip(30, changes{f.a: {f.put("y", 1)}}))
	check("x", 10, 20, 30)
	check("y", 30)
	for i := range listwatch.Version(200) {
		f.check(f.group.Skip(40+10*i, nil))
	}
	check("x") // the gaps that are remembered are all newer
}

// Many gaps, as after an outage with many attempts, cost history and never correctness.
func TestOldGapsExpireWithTheirHistory(t *testing.T) {
	f := newGroup(t)
	for i := range listwatch.Version(200) {
		f.check(f.group.Skip(20+10*i, changes{f.a: {f.put("y", 1)}}))
	}
	for i := range listwatch.Version(200) {
		_, err := f.a.List(t.Context(), listwatch.Query{
			Start: listwatch.StartAt, Version: 15 + 10*i, Match: listwatch.MatchExact,
		})
		if !errors.Is(err, listwatch.Expired) {
			t.Errorf("a list at %d, in a gap: got %v, want Expired", 15+10*i, err)
		}
	}
}

func TestCachesOfAGroupAreFedByIt(t *testing.T) {
	f := newGroup(t)
	other := watchcache.New(listwatch.Description{Kind: "C"}, watchcache.Options{})
	for name, err := range map[string]error{
		"Apply of a cache":   f.a.Apply(f.put("y", 11)),
		"Replace of a cache": f.a.Replace(nil, 11),
		"a second Replace":   f.group.Replace(11, nil),
		"a version again":    f.group.Apply(10, nil),
		"an old version":     f.group.Apply(12, changes{f.a: {f.put("y", 10)}}),
		"a version above":    f.group.Apply(12, changes{f.a: {f.put("y", 13)}}),
		"a Skip backwards":   f.group.Skip(9, nil),
	} {
		if err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	if _, err := f.a.Union(listwatch.Part{Source: f.a}, listwatch.Part{Source: other}); !errors.Is(err,
		listwatch.Invalid) {
		t.Errorf("a union with a cache of its own: got %v, want Invalid", err)
	}
	f.want(f.next(f.watch(f.a, 10), 0))
	if f.group.Version() != 10 {
		t.Errorf("after errors the group is at version %d, want 10", f.group.Version())
	}
}

// A cache that is added later starts at the version of the group, and then has all changes.
func TestCachesCanBeAddedToAGroup(t *testing.T) {
	f := newGroup(t)
	f.check(f.group.Apply(15, changes{f.b: {f.put("z", 15)}}))
	late := f.group.Cache(listwatch.Description{Kind: "C"}, watchcache.Options{})
	if err := f.group.Add(late, []*listwatch.Object{f.object("y", 16)}); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("an object above the version of the group: got %v, want Invalid", err)
	}
	f.check(f.group.Add(late, []*listwatch.Object{f.object("y", 12)}))
	w := f.watch(late, 15)
	f.check(f.group.Apply(20, changes{f.a: {f.put("w", 19)}, late: {f.put("y", 20)}}))
	f.want(f.next(w, 1), "MODIFIED y@20")
	union, err := f.a.Union(listwatch.Part{Source: f.a}, listwatch.Part{Source: late})
	f.check(err)
	f.want(f.next(f.watch(union, 15), 2), "ADDED w@19", "MODIFIED y@20")
	if _, err := late.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 14}); !errors.Is(err,
		listwatch.Expired) {
		t.Errorf("a watch from before the cache was added: got %v, want Expired", err)
	}
}

// A group advances after one of its caches has failed, without the changes of that cache.
func TestStateOfAFailedCacheIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newGroup(t)
		union, err := f.b.Union(listwatch.Part{Source: f.a}, listwatch.Part{Source: f.b})
		f.check(err)
		next := listwatch.Query{Start: listwatch.StartAt, Version: 11}
		results := make(chan error)
		for _, s := range []listwatch.Source{f.a, union} {
			go func() {
				page, err := s.List(t.Context(), next)
				if err == nil {
					t.Errorf("got the state %v at version %d", page.Items, page.Version)
				}
				results <- err
			}()
		}
		synctest.Wait() // both lists wait for version 11
		failure := errors.New("a row cannot be shown")
		f.a.Fail(failure)
		f.check(f.group.Apply(11, map[*watchcache.Cache][]watchcache.Change{f.b: {f.put("y", 11)}}))
		for range 2 {
			if err := <-results; !errors.Is(err, failure) {
				t.Errorf("got %v, want the failure", err)
			}
		}
		if _, err := union.List(t.Context(), listwatch.Query{}); !errors.Is(err, failure) {
			t.Errorf("a later list of the union: got %v, want the failure", err)
		}
		if _, err := union.Watch(t.Context(), listwatch.Query{}); !errors.Is(err, failure) {
			t.Errorf("a later watch of the union: got %v, want the failure", err)
		}
	})
}
