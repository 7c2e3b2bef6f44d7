// Package convert shows the objects of a Source in another form, such as another version of their
// kind.
package convert

import (
	"context"

	"github.com/listwatch/listwatch"
)

// A Func returns an object in another form.
type Func func(ctx context.Context, o *listwatch.Object) (*listwatch.Object, error)

// A Conversion converts what readers of a Source receive. It is immutable.
type Conversion struct {
	// Object converts objects.
	Object Func
	// Own converts what a Source writes itself: the objects of bookmarks, and the keys of a
	// difference. If nil, these stay as they are.
	Own Func
	// Blocks is true if Object may wait for something, so that watchers cannot be
	// [listwatch.Poller]s.
	Blocks bool
}

// Objects returns the converted objects. An error is the first error of c.Object.
func (c *Conversion) Objects(ctx context.Context, objects []*listwatch.Object) ([]*listwatch.Object, error) {
	all := make([]*listwatch.Object, len(objects))
	for i, o := range objects {
		var err error
		if all[i], err = c.Object(ctx, o); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// List returns a page of source with converted objects.
func (c *Conversion) List(ctx context.Context, source listwatch.Source, q listwatch.Query) (listwatch.Page, error) {
	page, err := source.List(ctx, q)
	if err == nil {
		page.Items, err = c.Objects(ctx, page.Items)
	}
	if err != nil {
		return listwatch.Page{}, err
	}
	return page, nil
}

// Watch returns a watch of source with converted objects. If one cannot be converted, the watch
// fails after the events before it.
func (c *Conversion) Watch(ctx context.Context, source listwatch.Source, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	r := reader{conversion: c}
	if p, ok := w.(listwatch.Poller); ok && !c.Blocks {
		return &poller{p, r}, nil
	}
	return &watcher{w, r}, nil
}

type watcher struct {
	listwatch.Watcher
	reader
}

// Next implements [listwatch.Watcher].
func (w *watcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	return w.read(ctx, dst, func() (int, error) { return w.Watcher.Next(ctx, dst) })
}

type poller struct {
	listwatch.Poller
	reader
}

// Next implements [listwatch.Watcher].
func (p *poller) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	return p.read(ctx, dst, func() (int, error) { return p.Poller.Next(ctx, dst) })
}

// Poll implements [listwatch.Poller].
func (p *poller) Poll(dst []listwatch.Event) (int, error) {
	return p.read(context.Background(), dst, func() (int, error) { return p.Poller.Poll(dst) })
}

// Progress implements [listwatch.Poller].
func (p *poller) Progress() listwatch.Progress {
	at := p.Poller.Progress()
	at.More = at.More || p.failed != nil
	return at
}

// A reader converts the events of a watcher.
type reader struct {
	conversion *Conversion
	failed     error // what the next read returns
}

// read converts the objects of the events that next stores in dst.
func (r *reader) read(ctx context.Context, dst []listwatch.Event, next func() (int, error)) (int, error) {
	if r.failed != nil {
		return 0, r.failed
	}
	n, err := next()
	for i := range dst[:n] {
		if r.failed = r.convert(ctx, &dst[i]); r.failed == nil {
			continue
		}
		if i > 0 {
			return i, nil // the reader has the events before the failure
		}
		return 0, r.failed
	}
	return n, err
}

func (r *reader) convert(ctx context.Context, e *listwatch.Event) error {
	f := r.conversion.Object
	isKey := e.Initial && e.Type == listwatch.Deleted
	if e.Type == listwatch.Bookmark || e.Type == listwatch.Synced || isKey {
		f = r.conversion.Own
	}
	if f == nil {
		return nil
	}
	o, err := f(ctx, e.Object)
	if err == nil {
		e.Object = o
	}
	return err
}
