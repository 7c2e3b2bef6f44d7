package bookmark

import (
	"context"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/mutation"
	"github.com/listwatch/listwatch/conformance/reference"
)

// Mutants break the cases of bookmarks. Their sources make the bookmarks themselves: the server's own, which are right, would hide
// them.
var Mutants = []mutation.Mutant{
	{Name: "bookmarks-unasked", Breaks: []string{"bookmark/opt-in"}, Defect: reference.Interceptors{Source: mutation.OnWatches(func(q *listwatch.Query) { q.Bookmarks = true })}},
	{Name: "never-bookmarks", Breaks: []string{
		"bookmark/idle-progress", "bookmark/before-timeout", "bookmark/sound", "bookmark/monotone", "bookmark/resume",
		"drain/final-bookmark",
	}, Defect: reference.Interceptors{Source: mutation.OnEvents(func(e listwatch.Event, _ int) []listwatch.Event { return []listwatch.Event{e} })}},
	{Name: "bookmarks-have-a-spec", Breaks: []string{"bookmark/shape"}, Defect: reference.Interceptors{Source: onBookmarks(func(b listwatch.Event) listwatch.Event {
		return mutation.WithData(b, append(b.Object.Data[:len(b.Object.Data)-1:len(b.Object.Data)-1], `,"spec":{}}`...))
	})}},
	{Name: "bookmarks-early", Breaks: []string{"bookmark/sound", "bookmark/monotone", "bookmark/never-from-future", "bookmark/resume"}, Defect: reference.Interceptors{
		Source: onBookmarks(func(b listwatch.Event) listwatch.Event { return markAt(b.Version + 1) }),
	}},
	{Name: "bookmarks-go-back", Breaks: []string{"bookmark/monotone", "bookmark/sound"}, Defect: reference.Interceptors{
		Source: onBookmarks(func(b listwatch.Event) listwatch.Event { return markAt(b.Version - 1) }),
	}},
	{Name: "client-shows-bookmarks", Breaks: []string{"bookmark/not-to-handlers"}, Defect: reference.Interceptors{Client: func(r *client.Remote) listwatch.Source {
		return mutation.OnWatches(func(q *listwatch.Query) { q.Bookmarks = true })(r)
	}}},
}

func markAt(v listwatch.Version) listwatch.Event {
	return listwatch.NewBookmark(listwatch.Description{APIVersion: "conformance.example.com/v1", Kind: "Thing"}, v, false)
}

// onBookmarks returns a source whose watchers have a bookmark behind every event and at every Poll that finds nothing, as change has it.
func onBookmarks(change func(b listwatch.Event) listwatch.Event) func(listwatch.Source) listwatch.Source {
	return func(s listwatch.Source) listwatch.Source { return &marking{s, change} }
}

type marking struct {
	listwatch.Source
	change func(b listwatch.Event) listwatch.Event
}

// Describe is that of the source below.
func (m *marking) Describe() listwatch.Description { return listwatch.Describe(m.Source) }

// Watch adds bookmarks.
func (m *marking) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := m.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	p, ok := w.(listwatch.Poller)
	if !ok || !q.Bookmarks {
		return w, nil
	}
	return &markingWatcher{Poller: p, change: m.change}, nil
}

type markingWatcher struct {
	listwatch.Poller
	change func(b listwatch.Event) listwatch.Event
	told   listwatch.Version
}

// Poll returns an event, or a bookmark where the position has moved without one.
func (w *markingWatcher) Poll(dst []listwatch.Event) (int, error) {
	n, err := w.Poller.Poll(dst[:1])
	if n > 0 || err != nil {
		return n, err
	}
	if at := w.Poller.Position(); at > w.told {
		w.told = at
		dst[0] = w.change(markAt(at))
		return 1, nil
	}
	return 0, nil
}

// Position tells the server nothing, so that it makes no bookmarks of its own.
func (w *markingWatcher) Position() listwatch.Version { return 0 }
