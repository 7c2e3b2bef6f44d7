package bolt_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/bolt"
)

// A union resumes after a restart from the version of any event, with the writes to all parts.
func TestUnionResumesAfterRestart(t *testing.T) {
	db := open(t, bolt.Options{})
	union := func() (listwatch.Source, *store.Collection) {
		nodes, err := db.db.Collection(store.CollectionSpec{Kind: "Node"})
		if err != nil {
			t.Fatal(err)
		}
		u, err := nodes.Union(listwatch.Part{Source: db.pods}, listwatch.Part{Source: nodes})
		if err != nil {
			t.Fatal(err)
		}
		return u, nodes
	}
	_, nodes := union()
	first := db.create("p0")
	var want []string
	for i := range 4 {
		if _, err := nodes.Create(t.Context(), fmt.Appendf(nil, `{"metadata":{"name":"n%d"}}`, i)); err != nil {
			t.Fatal(err)
		}
		db.create(fmt.Sprint("p", i+1))
		want = append(want, fmt.Sprint("n", i), fmt.Sprint("p", i+1))
	}
	db.reopen()
	u, _ := union()
	for i := range want {
		w, err := u.Watch(t.Context(),
			listwatch.Query{Start: listwatch.StartAt, Version: first.Version + listwatch.Version(i)})
		if err != nil {
			t.Fatal(err)
		}
		batch := make([]listwatch.Event, 16)
		n, err := w.Next(t.Context(), batch)
		w.Close()
		var got []string
		for _, e := range batch[:n] {
			got = append(got, e.Object.Key.Name)
		}
		if !slices.Equal(got, want[i:]) || err != nil {
			t.Errorf("from event %d: got %q, %v; want %q", i, got, err, want[i:])
		}
	}
}
