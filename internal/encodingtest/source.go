package encodingtest

import (
	"context"

	"github.com/listwatch/listwatch"
)

// A Source is a Source of JSON that shows its objects in [Encoding].
type Source struct{ listwatch.Source }

// Describe implements [listwatch.Describer].
func (s Source) Describe() listwatch.Description {
	d := listwatch.Describe(s.Source)
	d.Encoding = Encoding{}
	return d
}

// List implements [listwatch.Source].
func (s Source) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	page, err := s.Source.List(ctx, q)
	for i, o := range page.Items {
		page.Items[i] = Object(o)
	}
	return page, err
}

// Watch implements [listwatch.Source].
func (s Source) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := s.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	return watcher{w}, nil
}

type watcher struct{ listwatch.Watcher }

// Next implements [listwatch.Watcher]. The key of a difference stays JSON, as in every Source.
func (w watcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := w.Watcher.Next(ctx, dst)
	for i, e := range dst[:n] {
		isKey := e.Initial && e.Type == listwatch.Deleted
		if e.Type != listwatch.Bookmark && e.Type != listwatch.Synced && !isKey {
			dst[i].Object = Object(e.Object)
		}
	}
	return n, err
}
