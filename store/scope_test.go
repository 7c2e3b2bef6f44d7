package store_test

import (
	"testing"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
)

func tenant(t *testing.T, name string) listwatch.Selection {
	t.Helper()
	labels, err := listwatch.LabelEquals("tenant", name)
	if err != nil {
		t.Fatal(err)
	}
	return listwatch.Selection{Labels: labels}
}

func TestScopeRestrictsReadsAndWrites(t *testing.T) {
	all, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{})
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := all.Within(tenant(t, "ours")), all.Within(tenant(t, "theirs"))
	mustCreate(t, ours, `{"metadata":{"name":"a","labels":{"tenant":"ours"}}}`)
	key := listwatch.Key{Name: "a"}

	_, err = ours.Create(t.Context(), []byte(`{"metadata":{"name":"b"}}`))
	wantCode(t, err, listwatch.Forbidden,
		`objects "b" is forbidden: the object would not match "tenant=ours", to which the request is restricted`)
	_, err = ours.DryRun().Create(t.Context(), []byte(`{"metadata":{"name":"b"}}`))
	wantCode(t, err, listwatch.Forbidden, "")
	_, err = ours.Replace(t.Context(), key, []byte(`{"metadata":{"name":"a","labels":{"tenant":"theirs"}}}`))
	wantCode(t, err, listwatch.Forbidden, "")

	_, err = theirs.Get(t.Context(), key)
	wantCode(t, err, listwatch.NotFound, "")
	_, err = theirs.Replace(t.Context(), key, []byte(`{"metadata":{"name":"a","labels":{"tenant":"theirs"}}}`))
	wantCode(t, err, listwatch.NotFound, "")
	_, err = theirs.Delete(t.Context(), key, listwatch.Preconditions{})
	wantCode(t, err, listwatch.NotFound, "")
	if page, err := theirs.List(t.Context(), listwatch.Query{}); err != nil || len(page.Items) != 0 {
		t.Errorf("list: got %d objects, %v, want none", len(page.Items), err)
	}
	w, err := theirs.Watch(t.Context(), listwatch.Query{Bookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	mustCreate(t, theirs, `{"metadata":{"name":"c","labels":{"tenant":"theirs"}}}`)
	for e, err := range listwatch.All(t.Context(), w) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == listwatch.Added {
			if e.Object.Key.Name != "c" {
				t.Errorf("watch: got %s, want only c", e.Object.Key)
			}
			break
		}
	}
	if _, err := ours.Within(tenant(t, "theirs")).Get(t.Context(), key); err == nil {
		t.Error("a scope within a scope has an object that is not in both")
	}
	if _, err := ours.Delete(t.Context(), key, listwatch.Preconditions{}); err != nil {
		t.Error(err)
	}
}

func TestScopeOfNamespace(t *testing.T) {
	pods, err := memory.Open(memory.Options{}).Collection(store.CollectionSpec{Kind: "Pod", Namespaced: true})
	if err != nil {
		t.Fatal(err)
	}
	view := pods.Within(listwatch.Selection{Namespace: "n"})
	o := mustCreate(t, view, `{"metadata":{"name":"a"}}`)
	if o.Key.Namespace != "n" {
		t.Errorf("got namespace %q, want the namespace of the scope", o.Key.Namespace)
	}
	_, err = view.CreateIn(t.Context(), "m", []byte(`{"metadata":{"name":"a"}}`))
	wantCode(t, err, listwatch.Forbidden,
		`pods is forbidden: the request is restricted to the namespace "n", and names "m"`)
	_, err = view.List(t.Context(), listwatch.Query{Selection: listwatch.Selection{Namespace: "m"}})
	wantCode(t, err, listwatch.Forbidden, "")
	mustCreate(t, pods, `{"metadata":{"name":"a","namespace":"m"}}`)
	page, err := view.List(t.Context(), listwatch.Query{})
	if err != nil || len(page.Items) != 1 {
		t.Errorf("got %d objects, %v, want one", len(page.Items), err)
	}
	_, err = view.Within(listwatch.Selection{Namespace: "m"}).Get(t.Context(), keyA)
	wantCode(t, err, listwatch.NotFound, "")
	_, err = pods.Within(listwatch.Selection{Fields: listwatch.FieldEquals("spec.unknown", "x")}).Get(t.Context(), keyA)
	wantCode(t, err, listwatch.Invalid, "")
	shown, err := listwatch.ParseProjection("spec")
	if err != nil {
		t.Fatal(err)
	}
	_, err = pods.Within(listwatch.Selection{Projection: shown}).List(t.Context(), listwatch.Query{})
	wantCode(t, err, listwatch.Invalid, `pods: a scope must have no projection, got "spec"`)
}
