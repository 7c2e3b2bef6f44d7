package mutants

import (
	"context"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
)

// bookmarkMutants are servers and clients with one defect each, which the cases about bookmarks
// must detect. Mutants with wrong bookmarks create all bookmarks in the source, because correct
// bookmarks from the server would hide the defect; see onBookmarks.
var bookmarkMutants = []mutant{
	{
		Name: "sends-unrequested-bookmarks", Breaks: []string{"bookmark/opt-in"},
		Defect: defect{Source: onWatches(func(q *listwatch.Query) { q.Bookmarks = true })},
	},
	{
		Name: "sends-no-bookmarks",
		Breaks: []string{
			"bookmark/idle-progress", "bookmark/before-timeout", "bookmark/sound", "bookmark/monotone",
			"bookmark/resume", "drain/final-bookmark",
		},
		Defect: defect{Source: onEvents(func(e listwatch.Event, _ int) []listwatch.Event {
			return []listwatch.Event{
				e,
			}
		})},
	},
	{
		Name: "bookmarks-have-a-spec", Breaks: []string{"bookmark/shape"},
		Defect: defect{Source: onBookmarks(func(b listwatch.Event) listwatch.Event {
			return withData(b, append(b.Object.Data[:len(b.Object.Data)-1:len(b.Object.Data)-1], `,"spec":{}}`...))
		})},
	},
	{
		Name:   "bookmarks-are-one-version-too-high",
		Breaks: []string{"bookmark/sound", "bookmark/monotone", "bookmark/never-from-future", "bookmark/resume"},
		Defect: defect{
			Source: onBookmarks(func(b listwatch.Event) listwatch.Event { return bookmarkAt(b.Version + 1) }),
		},
	},
	{
		Name: "bookmarks-are-one-version-too-low", Breaks: []string{"bookmark/monotone", "bookmark/sound"},
		Defect: defect{
			Source: onBookmarks(func(b listwatch.Event) listwatch.Event { return bookmarkAt(b.Version - 1) }),
		},
	},
	{
		Name: "client-returns-bookmarks", Breaks: []string{"bookmark/not-to-handlers"},
		Defect: defect{Client: func(r *client.Remote) listwatch.Source {
			return onWatches(func(q *listwatch.Query) { q.Bookmarks = true })(r)
		}},
	},
}

func bookmarkAt(v listwatch.Version) listwatch.Event {
	d := listwatch.Description{APIVersion: "conformance.example.com/v1", Kind: "Thing"}
	return listwatch.NewBookmark(d, listwatch.State{Version: v})
}

// onBookmarks returns a function that wraps a source. Whenever a Poll finds no event and the
// position has advanced since the last bookmark, the watchers of the wrapper return a bookmark that
// change has modified.
func onBookmarks(change func(b listwatch.Event) listwatch.Event) func(listwatch.Source) listwatch.Source {
	return func(s listwatch.Source) listwatch.Source { return &bookmarkingSource{s, change} }
}

type bookmarkingSource struct {
	listwatch.Source
	change func(b listwatch.Event) listwatch.Event
}

func (b *bookmarkingSource) Describe() listwatch.Description { return listwatch.Describe(b.Source) }

func (b *bookmarkingSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	w, err := b.Source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	p, ok := w.(listwatch.Poller)
	if !ok || !q.Bookmarks {
		return w, nil
	}
	return &bookmarkingWatcher{Poller: p, change: b.change}, nil
}

type bookmarkingWatcher struct {
	listwatch.Poller
	change func(b listwatch.Event) listwatch.Event
	last   listwatch.Version
}

// Poll returns at most one event or bookmark.
func (b *bookmarkingWatcher) Poll(dst []listwatch.Event) (int, error) {
	n, err := b.Poller.Poll(dst[:1])
	if n > 0 || err != nil {
		return n, err
	}
	if at := b.Poller.Progress().Version; at > b.last {
		b.last = at
		dst[0] = b.change(bookmarkAt(at))
		return 1, nil
	}
	return 0, nil
}

// Progress returns the zero Progress, so that the server sends no bookmarks of its own.
func (b *bookmarkingWatcher) Progress() listwatch.Progress { return listwatch.Progress{} }
