package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/controller"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/store/memory"
	"github.com/listwatch/listwatch/typed"
)

func TestOrphansAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory.Open(memory.Options{})
		owners, err := db.Collection(store.CollectionSpec{Kind: "App"})
		if err != nil {
			t.Fatal(err)
		}
		pods, err := db.Collection(store.CollectionSpec{Kind: "Pod", Namespaced: true})
		if err != nil {
			t.Fatal(err)
		}
		apps := typed.Collection[App]{Store: owners}
		create := func(name string, owners ...listwatch.OwnerReference) {
			t.Helper()
			p := App{Metadata: listwatch.Metadata{Namespace: "n", Name: name, OwnerReferences: owners}}
			if _, err := (typed.Collection[App]{Store: pods}).Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		want := func(when string, names ...string) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			page, err := pods.List(t.Context(), listwatch.Query{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range page.Items {
				got = append(got, o.Key.Name)
			}
			if len(got) != len(names) {
				t.Errorf("%s: got %q, want %q", when, got, names)
			}
		}
		var refs []listwatch.OwnerReference
		for _, name := range []string{"one", "two"} {
			a, err := apps.Create(t.Context(), App{Metadata: listwatch.Metadata{Name: name}})
			if err != nil {
				t.Fatal(err)
			}
			refs = append(refs, listwatch.OwnerReference{APIVersion: "v1", Kind: "App", Name: name, UID: a.UID})
		}
		other := listwatch.OwnerReference{APIVersion: "v1", Kind: "Job", Name: "j", UID: "j"}
		gone := refs[0]
		gone.UID = "of an earlier app"
		create("free")
		create("gone", gone)
		create("of-one", refs[0])
		create("of-both", refs...)
		create("of-other", refs[0], other)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- controller.Orphans{Owners: owners, OwnerKind: "App", Dependents: pods}.Run(ctx)
		}()
		want("at the start", "free", "of-both", "of-one", "of-other")
		if _, err := apps.Delete(t.Context(), listwatch.Key{Name: "one"}, 0); err != nil {
			t.Fatal(err)
		}
		want("after one delete", "free", "of-both", "of-other")
		create("late", refs[0])
		if _, err := apps.Delete(t.Context(), listwatch.Key{Name: "two"}, 0); err != nil {
			t.Fatal(err)
		}
		want("after both deletes", "free", "of-other")
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
