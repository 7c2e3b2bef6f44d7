package relay_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/testkit"
	"github.com/listwatch/listwatch/relay"
)

// A fieldlessSource describes fields, but its objects have the values only in their JSON, not in
// [listwatch.Object.Fields].
type fieldlessSource struct {
	listwatch.Source
	description listwatch.Description
}

func (s *fieldlessSource) Describe() listwatch.Description { return s.description }

func (s *fieldlessSource) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	page, err := s.Source.List(ctx, q)
	for i, o := range page.Items {
		page.Items[i] = withoutFields(o)
	}
	return page, err
}

func (s *fieldlessSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.Source.Watch(ctx, q)
	return &fieldlessWatcher{w}, err
}

type fieldlessWatcher struct{ listwatch.Watcher }

func (w *fieldlessWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := w.Watcher.Next(ctx, dst)
	for i := range dst[:n] {
		dst[i].Object = withoutFields(dst[i].Object)
	}
	return n, err
}

func withoutFields(o *listwatch.Object) *listwatch.Object {
	return &listwatch.Object{Key: o.Key, Version: o.Version, Labels: o.Labels, Data: o.Data}
}

func TestDescribedFieldsAreReadFromTheJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := openOrigin(t)
		o.put("a", "red")
		r := openRelay(t, &fieldlessSource{o, listwatch.Describe(o)}, relay.Options{})
		red, err := listwatch.ParseFieldSelector("spec.color=red")
		if err != nil {
			t.Fatal(err)
		}
		if page := mustList(t, r, listwatch.Query{Selection: listwatch.Selection{Fields: red}}); len(page.Items) != 1 {
			t.Fatalf("listed %d red objects, want a", len(page.Items))
		}
		w := testkit.Watch(t, r, listwatch.Query{Selection: listwatch.Selection{Fields: red}})
		o.put("b", "blue")
		o.put("b", "red")
		for i, e := range testkit.Read(t, w, 2) {
			if want := []string{"a", "b"}[i]; e.Type != listwatch.Added || e.Object.Key.Name != want {
				t.Errorf("event %d: got %s %v, want ADDED %s", i, e.Type, e.Object.Key, want)
			}
		}
	})
}
