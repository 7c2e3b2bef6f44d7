package memory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/leaktest"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

type flag struct {
	listwatch.Metadata `json:"metadata"`
	On                 bool `json:"on"`
	Count              int  `json:"count"`
}

func TestMain(m *testing.M) { leaktest.Main(m) }

// open returns a database with one collection, the namespaced kind Pod.
func open(t testing.TB, o memory.Options) (*memory.DB, *store.Collection) {
	t.Helper()
	db := memory.Open(o)
	pods, err := db.Collection(store.CollectionSpec{Kind: "Pod", Namespaced: true, Fields: []string{"spec.nodeName"}})
	if err != nil {
		t.Fatal(err)
	}
	return db, pods
}

func create(t testing.TB, c *store.Collection, data string) *listwatch.Object {
	t.Helper()
	return testkit.Must(c.Create(t.Context(), []byte(data)))(t)
}

func update(t testing.TB, c *store.Collection, key listwatch.Key, data string) *listwatch.Object {
	t.Helper()
	return testkit.Must(c.Replace(t.Context(), key, []byte(data)))(t)
}

// next returns the next n events of w, each as a line of type, key, version and data.
func next(t testing.TB, w listwatch.Watcher, n int) (lines []string) {
	t.Helper()
	for e, err := range listwatch.All(t.Context(), w) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line(e.Type, e.Object))
		if len(lines) == n {
			break
		}
	}
	return lines
}

func line(e listwatch.EventType, o *listwatch.Object) string {
	return fmt.Sprintf("%v %v %v %s", e, o.Key, o.Version, o.Data)
}

func TestVersionsStartAtTheClockAndGrowByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db, pods := open(t, memory.Options{})
		start := listwatch.Version(time.Now().UnixMicro())
		page, err := pods.List(t.Context(), listwatch.Query{})
		if err != nil || page.Version != start || db.Version() != start || len(page.Items) != 0 {
			t.Fatalf("an empty list: got %+v, %v, want version %v", page, err, start)
		}
		nodes, err := db.Collection(store.CollectionSpec{Kind: "Node"})
		if err != nil {
			t.Fatal(err)
		}
		var got []listwatch.Version
		got = append(got, create(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`).Version)
		got = append(got, create(t, nodes, `{"metadata":{"name":"a"}}`).Version)
		got = append(got, update(t, pods, listwatch.Key{Namespace: "n", Name: "a"},
			`{"metadata":{"name":"a"},"x":1}`).Version)
		last, err := nodes.Delete(t.Context(), listwatch.Key{Name: "a"}, listwatch.Preconditions{})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, last.Version)
		if diff := cmp.Diff([]listwatch.Version{start + 1, start + 2, start + 3, start + 4}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		// The version of a list is the version of the database, for both collections.
		for _, c := range []*store.Collection{pods, nodes} {
			if page, err := c.List(t.Context(), listwatch.Query{}); err != nil || page.Version != db.Version() ||
				db.Version() != start+4 {
				t.Errorf("a list is at %v, %v, the database at %v, want both at %v", page.Version, err, db.Version(),
					start+4)
			}
		}
	})
}

func TestStartVersionIsUsed(t *testing.T) {
	db, pods := open(t, memory.Options{StartVersion: 7})
	if o := create(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`); o.Version != 8 || db.Version() != 8 {
		t.Errorf("the first write has version %v, the database %v, want 8", o.Version, db.Version())
	}
	if page, err := pods.List(t.Context(),
		listwatch.Query{Start: listwatch.StartAt, Match: listwatch.MatchExact, Version: 7}); err != nil ||
		len(page.Items) != 0 {
		t.Errorf("a list of the empty database: got %+v, %v", page, err)
	}
}

func TestEachDatabaseHasItsOwnEpoch(t *testing.T) {
	one, pods := open(t, memory.Options{})
	two, _ := open(t, memory.Options{})
	if one.Epoch() == "" || one.Epoch() == two.Epoch() {
		t.Errorf("epochs %q and %q, want different ones", one.Epoch(), two.Epoch())
	}
	want := listwatch.Description{APIVersion: "v1", Kind: "Pod", Fields: []string{"spec.nodeName"}, Epoch: one.Epoch()}
	if diff := cmp.Diff(want, listwatch.Describe(pods)); diff != "" {
		t.Errorf("description (-want +got):\n%s", diff)
	}
}

func TestCollectionCannotBeAddedTwice(t *testing.T) {
	db, _ := open(t, memory.Options{})
	if _, err := db.Collection(store.CollectionSpec{Kind: "Pod"}); !errors.Is(err, listwatch.AlreadyExists) {
		t.Errorf("got %v, want code AlreadyExists", err)
	}
	if _, err := db.Collection(store.CollectionSpec{Kind: "Pod", APIVersion: "metrics/v1"}); err != nil {
		t.Errorf("the same plural in another group: %v", err)
	}
}

func TestWatchReturnsTheWrittenObjects(t *testing.T) {
	_, pods := open(t, memory.Options{})
	key := listwatch.Key{Namespace: "n", Name: "a"}
	w := testkit.Watch(t, pods, listwatch.Query{})
	created := create(t, pods, `{"metadata":{"name":"a","namespace":"n"},"spec":{"nodeName":"n1"}}`)
	changed := update(t, pods, key, `{"metadata":{"name":"a"},"spec":{"nodeName":"n2"}}`)
	if same := update(t, pods, key, string(changed.Data)); same != changed {
		t.Errorf("an update without a change returned %v", same)
	}
	deleted, err := pods.Delete(t.Context(), key, listwatch.Preconditions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		line(listwatch.Added, created), line(listwatch.Modified, changed),
		line(listwatch.Deleted, deleted),
	}
	if diff := cmp.Diff(want, next(t, w, 3)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWatchResumesFromEveryVersionInHistory(t *testing.T) {
	db, pods := open(t, memory.Options{})
	start := db.Version()
	key := listwatch.Key{Namespace: "n", Name: "a"}
	create(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	for i := range 5 {
		update(t, pods, key, fmt.Sprintf(`{"metadata":{"name":"a"},"x":%d}`, i))
	}
	all := next(t, testkit.Watch(t, pods, listwatch.Query{Start: listwatch.StartAt, Version: start}), 6)
	for i := range all {
		got := next(t, testkit.Watch(t, pods,
			listwatch.Query{Start: listwatch.StartAt, Version: start + listwatch.Version(i)}), 6-i)
		if diff := cmp.Diff(all[i:], got); diff != "" {
			t.Errorf("from %d writes after the start (-want +got):\n%s", i, diff)
		}
	}
}

func TestCompactDropsHistoryAndKeepsState(t *testing.T) {
	db, pods := open(t, memory.Options{})
	before := create(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	now := create(t, pods, `{"metadata":{"name":"b","namespace":"n"}}`)
	db.Compact()
	w, err := pods.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: before.Version})
	if err == nil {
		_, err = w.Next(t.Context(), make([]listwatch.Event, 1))
	}
	if !errors.Is(err, listwatch.Expired) {
		t.Errorf("a watch from an earlier version: got %v, want code Expired", err)
	}
	w = testkit.Watch(t, pods, listwatch.Query{Start: listwatch.StartAt, Version: now.Version})
	c := create(t, pods, `{"metadata":{"name":"c","namespace":"n"}}`)
	if diff := cmp.Diff([]string{line(listwatch.Added, c)}, next(t, w, 1)); diff != "" {
		t.Errorf("a watch from the newest version (-want +got):\n%s", diff)
	}
	if page, err := pods.List(t.Context(), listwatch.Query{}); err != nil || len(page.Items) != 3 {
		t.Errorf("got %d objects, %v, want 3", len(page.Items), err)
	}
}

func TestHistoryIsLimitedByTheOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			options memory.Options
			expired bool
		}{
			"age passed":     {memory.Options{History: listwatch.Retention{Age: time.Minute}}, true},
			"age not passed": {memory.Options{History: listwatch.Retention{Age: time.Hour}}, false},
			"default age":    {memory.Options{}, true},
			"no age limit":   {memory.Options{History: listwatch.Retention{Age: -1}}, false},
			"bytes passed":   {memory.Options{History: listwatch.Retention{Age: -1, Bytes: 1}}, true},
		} {
			db, pods := open(t, c.options)
			start := db.Version()
			create(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
			time.Sleep(10 * time.Minute)
			create(t, pods, `{"metadata":{"name":"b","namespace":"n"}}`)
			w, err := pods.Watch(t.Context(), listwatch.Query{Start: listwatch.StartAt, Version: start})
			if err == nil {
				_, err = w.Next(t.Context(), make([]listwatch.Event, 1))
			}
			if errors.Is(err, listwatch.Expired) != c.expired {
				t.Errorf("%s: got %v, want expired: %v", name, err, c.expired)
			}
		}
	})
}

func TestFieldSelectorsUseDeclaredFields(t *testing.T) {
	_, pods := open(t, memory.Options{})
	create(t, pods, `{"metadata":{"name":"a","namespace":"n"},"spec":{"nodeName":"n1"}}`)
	create(t, pods, `{"metadata":{"name":"b","namespace":"n"},"spec":{"nodeName":"n2"}}`)
	fields, err := listwatch.ParseFieldSelector("spec.nodeName=n2")
	if err != nil {
		t.Fatal(err)
	}
	page, err := pods.List(t.Context(), listwatch.Query{Selection: listwatch.Selection{Fields: fields}})
	if err != nil || len(page.Items) != 1 || page.Items[0].Key.Name != "b" {
		t.Errorf("got %+v, %v, want only b", page, err)
	}
}

func TestCanceledCallsWriteNothing(t *testing.T) {
	db, pods := open(t, memory.Options{})
	o := create(t, pods, `{"metadata":{"name":"a","namespace":"n"}}`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, createErr := pods.Create(ctx, []byte(`{"metadata":{"name":"b","namespace":"n"}}`))
	_, getErr := pods.Get(ctx, o.Key)
	_, replaceErr := pods.Replace(ctx, o.Key, []byte(`{"metadata":{"name":"a"},"x":1}`))
	_, deleteErr := pods.Delete(ctx, o.Key, listwatch.Preconditions{})
	for _, err := range []error{createErr, getErr, replaceErr, deleteErr} {
		if err != context.Canceled {
			t.Errorf("got %v, want the unchanged error of the context", err)
		}
	}
	if db.Version() != o.Version {
		t.Errorf("the database is at %v, want %v", db.Version(), o.Version)
	}
}

func TestConcurrentUpdatesAreAllKept(t *testing.T) {
	const writers, each = 8, 14 // a writer can lose at most 98 races, and has a hundred tries
	flags := memory.New[flag]()
	w := testkit.Watch(t, flags, listwatch.Query{})
	f, err := flags.Create(t.Context(), flag{Metadata: listwatch.Metadata{Name: "counter"}})
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	for range writers {
		done.Go(func() {
			for range each {
				if _, err := flags.Update(t.Context(), f.Key(),
					func(f *flag) error { f.Count++; return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	got, err := flags.Get(t.Context(), f.Key())
	if err != nil || got.Count != writers*each || got.Generation != writers*each+1 {
		t.Errorf("got count %d at generation %d, %v, want %d and one more", got.Count, got.Generation, err,
			writers*each)
	}
	// Each update must be an event, in order.
	var last listwatch.Version
	count := 0
	for e, err := range listwatch.All(t.Context(), w) {
		if err != nil {
			t.Fatal(err)
		}
		f, err := listwatch.Decode[flag](e.Object)
		if err != nil || f.Count != count || e.Version <= last {
			t.Fatalf("after count %d at %v got count %d at %v, %v", count-1, last, f.Count, e.Version, err)
		}
		last = e.Version
		if count++; count > writers*each {
			break
		}
	}
}

func TestConcurrentWritersShareOneHistory(t *testing.T) {
	db, pods := open(t, memory.Options{})
	w := testkit.Watch(t, pods, listwatch.Query{})
	start := db.Version()
	var done sync.WaitGroup
	for writer := range 8 {
		done.Go(func() {
			key := listwatch.Key{Namespace: "n", Name: fmt.Sprintf("p%d", writer)}
			for i := range 30 {
				_, err := pods.CreateIn(t.Context(), "n",
					fmt.Appendf(nil, `{"metadata":{"name":%q},"i":%d}`, key.Name, i))
				if err == nil {
					_, err = pods.Replace(t.Context(), key,
						fmt.Appendf(nil, `{"metadata":{"name":%q},"i":-1}`, key.Name))
				}
				if err == nil {
					_, err = pods.Delete(t.Context(), key, listwatch.Preconditions{})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	const writes = 8 * 30 * 3
	if got := db.Version() - start; got != writes {
		t.Errorf("%d versions for %d writes", got, writes)
	}
	version := start
	for e, err := range listwatch.All(t.Context(), w) {
		if err != nil {
			t.Fatal(err)
		}
		if version++; e.Version != version {
			t.Fatalf("got version %v, want %v", e.Version, version)
		}
		if version == start+writes {
			break
		}
	}
}

func TestNewNamesTheCollectionAfterItsType(t *testing.T) {
	flags := memory.New[flag]()
	want := store.CollectionSpec{Kind: "flag", APIVersion: "v1", Plural: "flags"}
	got := store.CollectionOf(flags).Spec()
	if got.Kind != want.Kind || got.APIVersion != want.APIVersion || got.Plural != want.Plural || got.Namespaced {
		t.Errorf("got %+v, want %+v", got, want)
	}
	var _ listwatch.Source = flags
	if d := listwatch.Describe(flags); d.Kind != "flag" || d.Epoch == "" {
		t.Errorf("got description %+v, want kind flag and an epoch", d)
	}
}

func TestNewPanicsWithoutTheMetadataTag(t *testing.T) {
	type untagged struct{ listwatch.Metadata }
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "untagged") ||
			!strings.Contains(text, `json:"metadata"`) {
			t.Errorf("got panic %q, want it to name the type and the tag", text)
		}
	}()
	memory.New[untagged]()
}

func TestTypedItemsAndEvents(t *testing.T) {
	flags := memory.New[flag]()
	for _, name := range []string{"b", "a"} {
		if _, err := flags.Create(t.Context(), flag{Metadata: listwatch.Metadata{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	items, version, err := flags.Items(t.Context(), listwatch.Query{})
	if err != nil || len(items) != 2 || items[0].Name != "a" || items[1].Name != "b" ||
		items[0].Metadata.Version() != version {
		t.Fatalf("got %+v at %v, %v, want a, which is the newest, and b", items, version, err)
	}
	var got []string
	for e, err := range flags.Events(t.Context(), listwatch.Query{Bookmarks: true}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%v %q initial=%v on=%v", e.Type, e.Object.Name, e.Initial, e.Object.On))
		if e.Type == listwatch.Synced {
			if _, err := flags.Update(t.Context(), items[0].Key(),
				func(f *flag) error { f.On = true; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if e.Type == listwatch.Modified {
			break
		}
	}
	want := []string{
		`ADDED "a" initial=true on=false`, `ADDED "b" initial=true on=false`,
		`BOOKMARK "" initial=false on=false`, `MODIFIED "a" initial=false on=true`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTypedEventsEndWithAnError(t *testing.T) {
	flags := memory.New[flag]()
	create(t, store.CollectionOf(flags), `{"metadata":{"name":"a"},"on":"yes"}`)
	readEvents := func(ctx context.Context, q listwatch.Query) (err error) {
		n := 0
		for _, err = range flags.Events(ctx, q) {
			n++
		}
		if n != 1 {
			t.Errorf("%d events, want only the error", n)
		}
		return err
	}
	if err := readEvents(t.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Corrupt) {
		t.Errorf("an object that is not a flag: got %v, want code Corrupt", err)
	}
	if _, _, err := flags.Items(t.Context(), listwatch.Query{}); !errors.Is(err, listwatch.Corrupt) {
		t.Errorf("Items: got %v, want code Corrupt", err)
	}
	fields, err := listwatch.ParseFieldSelector("spec.none=1")
	if err != nil {
		t.Fatal(err)
	}
	if err := readEvents(t.Context(), listwatch.Query{
		Selection: listwatch.Selection{Fields: fields},
	}); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("an undeclared field: got %v, want code Invalid", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := readEvents(ctx, listwatch.Query{InitialEvents: listwatch.InitialEventsNo}); err != context.Canceled {
		t.Errorf("a canceled context: got %v, want its error", err)
	}
}
