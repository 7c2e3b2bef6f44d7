package informer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
)

func byNode(i *Item[*thing]) []string { return []string{i.Value.Node} }

// put stores objects described by words such as "ns/a=node1".
func put(t testing.TB, x *Indexer[*thing], words ...string) {
	t.Helper()
	for _, word := range words {
		if err := x.Put(parseThing(word)); err != nil {
			t.Fatal(err)
		}
	}
}

func parseThing(word string) *Item[*thing] {
	key, node, _ := strings.Cut(word, "=")
	namespace, name, ok := strings.Cut(key, "/")
	if !ok {
		namespace, name = "", key
	}
	i := thingAt(listwatch.Key{Namespace: namespace, Name: name}, 1, node)
	i.Value.Labels = map[string]string{"node": node}
	return i
}

func names(things []*thing) string {
	var all []string
	for _, s := range things {
		all = append(all, s.Key().String())
	}
	return strings.Join(all, " ")
}

func TestListSelectsInKeyOrder(t *testing.T) {
	var x Indexer[*thing]
	put(t, &x, "b/x=1", "a/z=2", "a/y=1", "c=1", "b/y=2", "ab/y=1")
	for _, c := range []struct {
		q    listwatch.Query
		want string
	}{
		{listwatch.Query{}, "c a/y a/z ab/y b/x b/y"},
		{listwatch.Query{Start: listwatch.StartAny}, "c a/y a/z ab/y b/x b/y"},
		{listwatch.Query{Selection: listwatch.Selection{Namespace: "a"}}, "a/y a/z"},
		{listwatch.Query{Selection: listwatch.Selection{Namespace: "aa"}}, ""},
		{listwatch.Query{Selection: listwatch.Selection{Namespace: "b", Name: "y"}}, "b/y"},
		{listwatch.Query{Selection: listwatch.Selection{Namespace: "b", Name: "z"}}, ""},
		{listwatch.Query{Selection: listwatch.Selection{Name: "y"}}, "a/y ab/y b/y"},
		{listwatch.Query{Selection: listwatch.Selection{Labels: testkit.Labels(t, "node=1")}}, "c a/y ab/y b/x"},
		{listwatch.Query{Selection: listwatch.Selection{Namespace: "a", Labels: testkit.Labels(t, "node!=1")}}, "a/z"},
		{listwatch.Query{
			Selection: listwatch.Selection{Namespace: "b", Name: "y", Labels: testkit.Labels(t, "node=1")},
		}, ""},
		{listwatch.Query{Selection: listwatch.Selection{Fields: testkit.Fields(t, "metadata.name=y")}}, "a/y ab/y b/y"},
		{listwatch.Query{
			Selection: listwatch.Selection{Fields: testkit.Fields(t, "metadata.name!=y,metadata.namespace!=a")},
		}, "c b/x"},
		{listwatch.Query{Selection: listwatch.Selection{Fields: testkit.Fields(t, "metadata.namespace=")}}, "c"},
		{listwatch.Query{Selection: listwatch.Selection{Fields: testkit.Fields(t, "metadata.namespace=b")}}, "b/x b/y"},
		{listwatch.Query{
			Selection: listwatch.Selection{Namespace: "a", Fields: testkit.Fields(t, "metadata.namespace=b")},
		}, ""},
		{listwatch.Query{
			Selection: listwatch.Selection{Namespace: "b", Fields: testkit.Fields(t, "metadata.name=x")},
		}, "b/x"},
		{listwatch.Query{
			Selection: listwatch.Selection{Namespace: "b", Name: "x", Fields: testkit.Fields(t, "metadata.name=y")},
		}, ""},
	} {
		got, err := x.List(c.q)
		if err != nil || names(got) != c.want {
			t.Errorf("%+v: got %q, error %v; want %q", c.q, names(got), err, c.want)
		}
		selected, err := x.Snapshot().Select(c.q)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for key, s := range selected {
			if key != s.Key() {
				t.Errorf("object %s has key %s", s.Key(), key)
			}
			all = append(all, key.String())
		}
		if strings.Join(all, " ") != c.want {
			t.Errorf("snapshot, %+v: got %q, want %q", c.q, all, c.want)
		}
	}
}

func TestListRejectsUnsupportedQueries(t *testing.T) {
	var x Indexer[*thing]
	for _, c := range []struct {
		q    listwatch.Query
		want string
	}{
		{listwatch.Query{Selection: listwatch.Selection{Fields: testkit.Fields(t, "spec.nodeName=n")}}, "ByIndex"},
		{listwatch.Query{Start: listwatch.StartAt, Version: 5}, "WaitForVersion"},
		{listwatch.Query{Match: listwatch.MatchExact}, "WaitForVersion"},
		{listwatch.Query{Limit: 5}, "Snapshot"},
		{listwatch.Query{Continue: "x"}, "Snapshot"},
		{listwatch.Query{InitialEvents: listwatch.InitialEventsYes}, "watch"},
		{listwatch.Query{Bookmarks: true}, "watch"},
	} {
		_, err := x.List(c.q)
		if !errors.Is(err, listwatch.Invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want Invalid and a hint at %s", c.q, err, c.want)
		}
		if _, err := x.Snapshot().Select(c.q); !errors.Is(err, listwatch.Invalid) {
			t.Errorf("snapshot, %+v: got %v, want Invalid", c.q, err)
		}
	}
}

func TestZeroIndexerIsReady(t *testing.T) {
	var x Indexer[thing]
	if v, ok := x.Get(keyOf("a")); ok {
		t.Errorf("the zero Indexer has %+v", v)
	}
	if x.Len() != 0 || x.Version() != 0 {
		t.Errorf("the zero Indexer has %d objects at version %d, want none at 0", x.Len(), x.Version())
	}
	if err := x.Delete(keyOf("a")); err != nil {
		t.Errorf("delete from the zero Indexer: %v", err)
	}
	if err := x.AddIndex("node", func(i *Item[thing]) []string { return []string{i.Value.Node} }); err != nil {
		t.Fatal(err)
	}
	if values, err := x.IndexValues("node"); err != nil || len(values) != 0 {
		t.Errorf("got %v, error %v; want no values", values, err)
	}
	if s := new(Indexer[thing]).Snapshot(); s.Len() != 0 || s.Version() != 0 {
		t.Errorf("the snapshot of the zero Indexer has %d objects at version %d", s.Len(), s.Version())
	}
	if err := x.Put(&Item[thing]{Key: keyOf("a"), Value: thing{Node: "n"}}); err != nil {
		t.Fatal(err)
	}
	if got, err := x.ByIndex("node", "n"); err != nil || len(got) != 1 {
		t.Errorf("got %v, error %v; want one object", got, err)
	}
}

func TestIndexesFollowWrites(t *testing.T) {
	var x Indexer[*thing]
	put(t, &x, "ns/a=1 2 2 1", "ns/b=2")
	words := func(i *Item[*thing]) []string { return strings.Fields(i.Value.Node) }
	if err := x.AddIndex("words", words); err != nil { // the store is not empty
		t.Fatal(err)
	}
	want := func(value, want string) {
		t.Helper()
		got, err := x.ByIndex("words", value)
		if err != nil || names(got) != want {
			t.Errorf("value %q: got %q, error %v; want %q", value, names(got), err, want)
		}
	}
	want("1", "ns/a")
	want("2", "ns/a ns/b")
	put(t, &x, "ns/a=2 3", "ns/c=3")
	want("1", "")
	want("2", "ns/a ns/b")
	want("3", "ns/a ns/c")
	if got, _ := x.ByIndex("words", "2"); got[0].Node != "2 3" {
		t.Errorf("the index returned an old object: %q", got[0].Node)
	}
	if err := x.Delete(listwatch.Key{Namespace: "ns", Name: "a"}); err != nil {
		t.Fatal(err)
	}
	want("2", "ns/b")
	if values, _ := x.IndexValues("words"); !slices.Equal(values, []string{"2", "3"}) {
		t.Errorf("got values %q, want 2 and 3", values)
	}
	if err := x.Replace([]*Item[*thing]{parseThing("ns/d=4"), parseThing("ns/e=4"), parseThing("ns/d=5")},
		9); err != nil {
		t.Fatal(err)
	}
	if d, ok := x.Get(listwatch.Key{Namespace: "ns", Name: "d"}); !ok || d.Node != "5" {
		t.Errorf("got %v, %t; want the last object with the repeated key", d, ok)
	}
	if _, ok := x.Get(listwatch.Key{Namespace: "ns", Name: "b"}); ok {
		t.Error("an object that Replace did not contain still exists")
	}
	want("2", "")
	want("4", "ns/e")
	want("5", "ns/d")
	if x.Len() != 2 || x.Version() != 9 {
		t.Errorf("got %d objects at version %d, want 2 at 9", x.Len(), x.Version())
	}
}

func TestByIndexReturnsAllOfALargeValue(t *testing.T) {
	var x Indexer[*thing]
	if err := x.AddIndex("node", byNode); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		put(t, &x, fmt.Sprintf("ns/%d=%d", i, i%3))
		for node := range 3 {
			got, err := x.ByIndex("node", fmt.Sprint(node))
			if want := (i + 3 - node) / 3; err != nil || len(got) != want {
				t.Fatalf("value %[2]d has %[1]d of %[3]d objects, error %[4]v; want %[5]d", len(got), node, i+1,
					err, want)
			}
		}
	}
}

func TestIndexErrorsNameExistingIndexes(t *testing.T) {
	var x Indexer[*thing]
	for _, err := range []error{x.AddIndex("", byNode), x.AddIndex("a", nil)} {
		if !errors.Is(err, listwatch.Invalid) {
			t.Errorf("got %v, want Invalid", err)
		}
	}
	_, err := x.ByIndex("nodes", "1")
	if !errors.Is(err, listwatch.NotFound) || !strings.Contains(err.Error(), "AddIndex") {
		t.Errorf("got %v, want NotFound and a hint at AddIndex", err)
	}
	for _, name := range []string{"node", "zone"} {
		if err := x.AddIndex(name, byNode); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.AddIndex("node", byNode); !errors.Is(err, listwatch.Invalid) {
		t.Errorf("duplicate name: got %v, want Invalid", err)
	}
	_, err = x.ByIndex("nodes", "1")
	_, err2 := x.IndexValues("nodes")
	_, err3 := x.Snapshot().ByIndex("nodes", "1")
	for _, err := range []error{err, err2, err3} {
		if !errors.Is(err, listwatch.NotFound) ||
			!strings.Contains(err.Error(), `"nodes"; existing indexes: node, zone`) {
			t.Errorf("got %v, want NotFound and the names of the existing indexes", err)
		}
	}
}

func TestIndexFuncPanicLeavesStoreUnchanged(t *testing.T) {
	var x Indexer[*thing]
	put(t, &x, "ns/a=ok")
	if err := x.AddIndex("node", byNode); err != nil {
		t.Fatal(err)
	}
	cause := errors.New("bad node")
	picky := func(i *Item[*thing]) []string {
		if i.Value.Node == "bad" {
			panic(cause)
		}
		return nil
	}
	if err := x.AddIndex("picky", picky); err != nil {
		t.Fatal(err)
	}
	before := x.Snapshot()
	_ = x.AddIndex("last", byNode)
	for name, err := range map[string]error{
		"Put new": x.Put(parseThing("ns/b=bad")), "Put old": x.Put(parseThing("ns/a=bad")),
		"Replace": x.Replace([]*Item[*thing]{parseThing("ns/c=1"), parseThing("ns/b=bad")}, 9),
	} {
		if !errors.Is(err, listwatch.Invalid) || !errors.Is(err, cause) ||
			!strings.Contains(err.Error(), `index "picky"`) {
			t.Errorf("%s: got %v, want Invalid with the index and the cause", name, err)
		}
	}
	if got, _ := x.ByIndex("node", "ok"); names(got) != "ns/a" || x.Len() != 1 || x.Version() != before.Version() {
		t.Errorf("got %q of %d objects at version %d, want only ns/a at %d",
			names(got), x.Len(), x.Version(), before.Version())
	}
	if values, _ := x.IndexValues("node"); !slices.Equal(values, []string{"ok"}) {
		t.Errorf("got values %q, want ok", values)
	}
	err := x.AddIndex("broken", func(*Item[*thing]) []string { panic("always") })
	if _, missing := x.ByIndex("broken", ""); !errors.Is(err, listwatch.Invalid) ||
		!errors.Is(missing, listwatch.NotFound) {
		t.Errorf("got %v, then %v; want Invalid, then NotFound", err, missing)
	}
	put(t, &x, "ns/b=fine")
}

func TestIndexFuncMayReadStore(t *testing.T) {
	var x Indexer[*thing]
	put(t, &x, "ns/a=1")
	err := x.AddIndex("count", func(*Item[*thing]) []string {
		x.Get(keyOf("a"))
		return []string{fmt.Sprint(x.Snapshot().Len() > 0)}
	})
	if err != nil {
		t.Fatal(err)
	}
	put(t, &x, "ns/b=1")
}

// TestSnapshotsAreImmutable compares an Indexer and its snapshots with a map.
func TestSnapshotsAreImmutable(t *testing.T) {
	type shot struct {
		s    *Snapshot[*thing]
		want string
	}
	rapid.Check(t, func(rt *rapid.T) {
		var x Indexer[*thing]
		model := map[string]string{}
		var shots []shot
		if err := x.AddIndex("early", byNode); err != nil {
			rt.Fatal(err)
		}
		// A few hundred keys make trees of several nodes.
		key := func() string { return fmt.Sprintf("ns/%d", rapid.IntRange(0, 400).Draw(rt, "key")) }
		fill := func(n int) {
			for range n {
				k, node := key(), fmt.Sprint(rapid.IntRange(0, 3).Draw(rt, "node"))
				model[k] = node
				put(t, &x, k+"="+node)
			}
		}
		fill(rapid.SampledFrom([]int{0, 1, 300}).Draw(rt, "fill"))
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(*rapid.T) { fill(1) },
			"delete": func(*rapid.T) {
				k := key()
				delete(model, k)
				_ = x.Delete(parseThing(k).Key)
			},
			"version": func(*rapid.T) { x.SetVersion(x.Version() + 1) },
			"replace": func(*rapid.T) {
				var all []*Item[*thing]
				for k := range model {
					if len(k)%2 == 0 {
						delete(model, k)
						continue
					}
					all = append(all, parseThing(k+"="+model[k]))
				}
				_ = x.Replace(all, x.Version()+1)
			},
			"late index": func(*rapid.T) { _ = x.AddIndex("late", byNode) },
			"snapshot": func(*rapid.T) {
				shots = append(shots, shot{x.Snapshot(), describeModel(x.Version(), model)})
			},
			"": func(rt *rapid.T) {
				k := key()
				got, ok := x.Get(parseThing(k).Key)
				if want, there := model[k]; ok != there || ok && got.Node != want {
					rt.Fatalf("%s: got %v, %t; want %q, %t", k, got, ok, want, there)
				}
				for _, s := range append(shots, shot{x.Snapshot(), describeModel(x.Version(), model)}) {
					if got := describeSnapshot(rt, s.s); got != s.want {
						rt.Fatalf("got %s\nwant %s", got, s.want)
					}
				}
			},
		})
	})
}

func describeModel(v listwatch.Version, model map[string]string) string {
	var all []string
	for k, node := range model {
		all = append(all, k+"="+node)
	}
	slices.Sort(all)
	return fmt.Sprint(v, len(all), all)
}

// describeSnapshot formats a snapshot as describeModel does. It fails if parts of the
// snapshot contradict each other.
func describeSnapshot(t *rapid.T, s *Snapshot[*thing]) string {
	model := map[string]string{}
	var last listwatch.Key
	for key, v := range s.All() {
		if last.Compare(key) >= 0 {
			t.Fatalf("%s follows %s", key, last)
		}
		last = key
		model[key.String()] = v.Node
		if got, ok := s.Get(key); !ok || got != v {
			t.Fatalf("Get(%s) returned %v, %t", key, got, ok)
		}
	}
	for _, x := range s.contents.indexes {
		found := 0
		values, _ := s.IndexValues(x.name)
		for _, value := range values {
			things, err := s.ByIndex(x.name, value)
			if err != nil {
				t.Fatal(err)
			}
			for key, v := range things {
				if model[key.String()] != value || v.Node != value {
					t.Fatalf("index %s holds %s under %s, but its node is %s", x.name, key, value, model[key.String()])
				}
				found++
			}
		}
		if found != len(model) || s.Len() != len(model) {
			t.Fatalf("index %s holds %d of %d objects; Len is %d", x.name, found, len(model), s.Len())
		}
	}
	return describeModel(s.Version(), model)
}
