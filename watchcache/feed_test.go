package watchcache_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/watchcache"
)

func TestWatchersReceiveAppliedChanges(t *testing.T) {
	f := open(t, watchcache.Options{})
	w := f.watch(listwatch.Query{Bookmarks: true})
	f.apply(put("c", "red", 11), put("a", "red", 13), remove("b", 13))
	f.apply(remove("nothing", 14), remove("c", 15))
	f.wantEvents(w, "ADDED a 7", "ADDED b 10", "BOOKMARK 10", "ADDED c 11", "MODIFIED a 13", "DELETED b 13",
		"DELETED c 15")
	if got := f.Version(); got != 15 {
		t.Errorf("the cache is at version %d, want 15", got)
	}
	if got, want := f.names(listwatch.Query{}), []string{"a"}; !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

func TestSelectorsReadTheJSON(t *testing.T) {
	f := open(t, watchcache.Options{})
	red, err := listwatch.ParseFieldSelector("spec.color=red")
	f.ok(err)
	q := listwatch.Query{Selection: listwatch.Selection{Fields: red}}
	if got, want := f.names(q), []string{"b"}; !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	w := f.watch(q)
	misleading := thing("d", "blue", 12)
	misleading.Fields = map[string]string{"spec.color": "red"}
	f.apply(put("a", "red", 11), watchcache.Change{Object: misleading}, put("b", "blue", 13))
	f.wantEvents(w, "ADDED b 10", "ADDED a 11", "DELETED b 13")
	unknown, err := listwatch.ParseFieldSelector("spec.size=1")
	f.ok(err)
	if _, err := f.List(t.Context(), listwatch.Query{
		Selection: listwatch.Selection{Fields: unknown},
	}); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("a selector by a field that is not described: got %v, want Invalid", err)
	}
}

func TestReplaceExpiresWatches(t *testing.T) {
	f := open(t, watchcache.Options{})
	w := f.watch(listwatch.Query{Start: listwatch.StartAt, Version: 10})
	f.ok(f.Replace([]*listwatch.Object{thing("c", "red", 12)}, 20))
	f.wantEnd(w, listwatch.Expired)
	if got, want := f.names(listwatch.Query{}), []string{"c"}; !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	f.apply(remove("c", 21))
	f.wantEvents(f.watch(listwatch.Query{Start: listwatch.StartAt, Version: 20}), "DELETED c 21")
}

func TestWatchesResumeInTheRestoredPast(t *testing.T) {
	f := &fixture{t, watchcache.New(things, watchcache.Options{})}
	change := put("a", "red", 12)
	change.Old = thing("a", "blue", 7)
	deleted := remove("b", 12)
	deleted.Old = thing("b", "red", 9)
	f.ok(f.Replace([]*listwatch.Object{thing("a", "red", 12), thing("c", "red", 11)}, 14, put("c", "red", 11), deleted,
		change))
	f.wantEvents(f.watch(listwatch.Query{Start: listwatch.StartAt, Version: 10}), "ADDED c 11", "MODIFIED a 12",
		"DELETED b 12")
	f.apply(remove("a", 15))
	f.wantEvents(f.watch(listwatch.Query{Start: listwatch.StartAt, Version: 12}), "DELETED a 15")
	page, err := f.List(t.Context(),
		listwatch.Query{Start: listwatch.StartAt, Version: 10, Match: listwatch.MatchExact})
	if f.ok(err); len(page.Items) != 2 || page.Items[0].Version != 7 || page.Items[1].Version != 9 {
		t.Errorf("listed %v at version 10, want a at version 7 and b at version 9", page.Items)
	}
	if _, err := f.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 9}); !errors.Is(err,
		listwatch.Expired) {
		t.Errorf("a watch from before the past: got %v, want Expired", err)
	}
	if s := f.Stats(); s.Oldest != 10 || s.Newest != 15 || s.Objects != 1 {
		t.Errorf("got %+v, want one object and versions 10 to 15", s)
	}
}

// The stated start of the past may be far below the version of its first change: the versions
// between them were never used, or were rolled back.
func TestOwnerStatesStartOfThePast(t *testing.T) {
	for name, test := range map[string]struct {
		state []*listwatch.Object
		past  []watchcache.Change
		want  []string
	}{
		"before a gap": {
			[]*listwatch.Object{thing("c", "red", 11)},
			[]watchcache.Change{put("c", "red", 11)},
			[]string{"ADDED c 11", "ADDED d 15"},
		},
		"without any change": {nil, nil, []string{"ADDED d 15"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fixture{t, watchcache.New(things, watchcache.Options{})}
			f.ok(f.Replace(test.state, 14, append([]watchcache.Change{{Version: 5}}, test.past...)...))
			f.apply(put("d", "red", 15))
			f.wantEvents(f.watch(listwatch.Query{Start: listwatch.StartAt, Version: 5}), test.want...)
			if _, err := f.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: 4}); !errors.Is(err,
				listwatch.Expired) {
				t.Errorf("a watch from before the stated version: got %v, want Expired", err)
			}
		})
	}
}

func TestWatchFromIncompleteVersionExpires(t *testing.T) {
	f := open(t, watchcache.Options{})
	f.Advance(12)
	if err := f.Apply(put("c", "red", 11)); !errors.Is(err, listwatch.Corrupt) {
		t.Fatalf("a late change: got %v, want Corrupt", err)
	}
	f.ok(f.Replace([]*listwatch.Object{thing("a", "blue", 7), thing("c", "red", 11)}, 12))
	at := listwatch.Query{Start: listwatch.StartAt, Version: 12}
	if _, err := f.Watch(t.Context(), at); !errors.Is(err, listwatch.Expired) {
		t.Errorf("a reader of version 12 lacks the late change, and resumes there: got %v, want Expired", err)
	}
	at.InitialEvents = listwatch.InitialEventsYes
	w := f.watch(at)
	f.apply(put("d", "red", 13))
	f.wantEvents(w, "ADDED a 7", "ADDED c 11", "ADDED d 13")
	f.apply(remove("d", 14))
	f.wantEvents(f.watch(listwatch.Query{Start: listwatch.StartAt, Version: 13}), "DELETED d 14")
}

func TestApplyIgnoresOldObjects(t *testing.T) {
	f := open(t, watchcache.Options{})
	w := f.watch(listwatch.Query{Start: listwatch.StartAt, Version: 10})
	deleted := remove("a", 11)
	deleted.Old = &listwatch.Object{}
	f.apply(deleted)
	f.wantEvents(w, "DELETED a 11")
}

func TestRefusedInput(t *testing.T) {
	state := []*listwatch.Object{thing("a", "blue", 7)}
	unnamed := &listwatch.Object{Version: 12, Data: []byte(`{"metadata":{}}`)}
	created := put("a", "red", 12)
	created.Old = nil
	renamed := put("a", "blue", 12)
	renamed.Old = thing("b", "blue", 7)
	replace := func(past ...watchcache.Change) func(*fixture) error {
		return func(*fixture) error { return watchcache.New(things, watchcache.Options{}).Replace(state, 20, past...) }
	}
	for name, test := range map[string]struct {
		do   func(f *fixture) error
		code listwatch.Code
		text string
	}{
		"a state at version 0": {
			func(f *fixture) error { return f.Replace(nil, 0) }, listwatch.Invalid,
			"versions start at 1",
		},
		"an object of version 0": {
			func(f *fixture) error { return f.Replace([]*listwatch.Object{thing("a", "red", 0)}, 20) },
			listwatch.Invalid, "object a has version 0",
		},
		"an object above the state": {
			func(f *fixture) error { return f.Replace([]*listwatch.Object{thing("a", "red", 21)}, 20) },
			listwatch.Invalid, "version 21",
		},
		"an object twice": {func(f *fixture) error {
			return f.Replace([]*listwatch.Object{state[0], state[0]},
				20)
		}, listwatch.Invalid, "object a twice"},
		"an older state": {
			func(f *fixture) error { return f.Replace(state, 9) }, listwatch.Invalid,
			"must not go back",
		},
		"an object without a name": {
			func(f *fixture) error { return f.Apply(watchcache.Change{Object: unnamed}) },
			listwatch.Invalid, "no name",
		},
		"an empty change": {
			func(f *fixture) error { return f.Apply(watchcache.Change{Version: 12}) },
			listwatch.Invalid, "neither a Key nor an Object",
		},
		"a delete of version 0": {
			func(f *fixture) error { return f.Apply(remove("a", 0)) }, listwatch.Invalid,
			"version 0",
		},
		"two versions": {
			func(f *fixture) error { return f.Apply(watchcache.Change{Version: 13, Object: thing("a", "red", 12)}) },
			listwatch.Invalid, "version 13",
		},
		"an object twice in a version": {func(f *fixture) error {
			return f.Apply(put("a", "red", 12), put("b", "red", 12), remove("a", 12))
		}, listwatch.Invalid, "twice"},
		"a version that was reached": {
			func(f *fixture) error { return f.Apply(put("a", "red", 10)) },
			listwatch.Corrupt, "after version 10",
		},
		"changes out of order": {func(f *fixture) error {
			return f.Apply(put("a", "red", 13),
				put("b", "red", 12))
		}, listwatch.Corrupt, "after version 13"},
		"a past that does not lead to the state": {
			replace(created), listwatch.Corrupt,
			"the state after it has it at 7",
		},
		"a past delete without an old object": {
			replace(remove("b", 12)), listwatch.Invalid,
			"the past deletes object b at version 12",
		},
		"a past change of another object": {
			replace(renamed), listwatch.Invalid,
			"the change of a at version 12 has the old object b",
		},
		"a past before its stated version": {
			replace(watchcache.Change{Version: 12}, created), listwatch.Corrupt,
			"after version 12",
		},
		"a past that starts above the state": {
			replace(watchcache.Change{Version: 21}), listwatch.Invalid,
			"above the version of the state",
		},
		"a past that starts at version zero": {
			replace(watchcache.Change{}), listwatch.Invalid,
			"neither a Key nor an Object",
		},
		"a past above the state": {func(*fixture) error {
			return watchcache.New(things, watchcache.Options{}).Replace(state, 11, created)
		}, listwatch.Invalid, "above the version of the state"},
		"a change before the state": {func(*fixture) error {
			return watchcache.New(things, watchcache.Options{}).Apply(created)
		}, listwatch.Invalid, "call Replace first"},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, watchcache.Options{})
			w := f.watch(listwatch.Query{Start: listwatch.StartAt, Version: 10})
			err := test.do(f)
			if !errors.Is(err, test.code) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v, want %v with %q", err, test.code, test.text)
			}
			f.apply(put("z", "red", 14)) // the failed call has changed nothing
			f.wantEvents(w, "ADDED z 14")
		})
	}
}

func TestAdvanceMovesWatchersWithoutEvents(t *testing.T) {
	f := open(t, watchcache.Options{})
	w := f.watch(listwatch.Query{Start: listwatch.StartAt, Version: 10}).(listwatch.Poller)
	f.Advance(15)
	f.Advance(12)
	if n, err := w.Poll(make([]listwatch.Event, 1)); n != 0 || err != nil || w.Progress().Version != 15 {
		t.Errorf("polled %d events, %v; the position is %d, want no event and 15", n, err, w.Progress().Version)
	}
	if err := f.Apply(put("c", "red", 15)); !errors.Is(err, listwatch.Corrupt) {
		t.Errorf("a change at a version that was passed: got %v, want Corrupt", err)
	}
	unfed := watchcache.New(things, watchcache.Options{})
	if unfed.Advance(5); unfed.Version() != 0 {
		t.Errorf("a cache without a state advanced to %d, want 0", unfed.Version())
	}
}

func TestFailEndsWatchesAndReads(t *testing.T) {
	gone := &listwatch.Error{Code: listwatch.Forbidden, Message: "the table was dropped"}
	for name, test := range map[string]struct {
		with, watch error
		read        listwatch.Code
	}{
		"an error":    {gone, listwatch.Forbidden, listwatch.Forbidden},
		"a clean end": {nil, io.EOF, listwatch.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, watchcache.Options{})
			w := f.watch(listwatch.Query{Start: listwatch.StartAt, Version: 10})
			f.apply(put("c", "red", 11))
			f.Fail(test.with)
			f.Fail(errors.New("a second failure"))
			f.wantEvents(w, "ADDED c 11")
			if _, err := w.Next(t.Context(), make([]listwatch.Event, 1)); !errors.Is(err, test.watch) {
				t.Errorf("the watch ended with %v, want %v", err, test.watch)
			}
			_, listErr := f.List(t.Context(), listwatch.Query{})
			_, watchErr := f.Watch(t.Context(), listwatch.Query{})
			for _, err := range []error{
				listErr, watchErr, f.Wait(t.Context(), 1), f.Apply(put("d", "red", 12)),
				f.Replace(nil, 20),
			} {
				if !errors.Is(err, test.read) {
					t.Errorf("after Fail: got %v, want %v", err, test.read)
				}
			}
		})
	}
}
