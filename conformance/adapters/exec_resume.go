package adapters

import (
	"context"
	"net/url"
	"slices"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/harness"
)

// An execSource is a [listwatch.Source] whose watches the client under test opens and resumes.
type execSource struct {
	*execClient
	replaced *client.Remote
}

// List is not supported.
func (e *execSource) List(context.Context, listwatch.Query) (listwatch.Page, error) {
	return listwatch.Page{}, harness.MissingAbility("the control hook has no lists")
}

// Watch asks the client to watch and to resume until the watch is closed.
func (e *execSource) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if err := checkFramings(e.replaced.Framings); err != nil {
		return nil, err
	}
	request, err := e.newRequest(ctx)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(e.replaced.URL)
	if err != nil {
		return nil, err
	}
	query := url.Values{"watch": {"1"}}
	switch q.Start {
	case listwatch.StartAt:
		query.Set("resourceVersion", q.Version.String())
	case listwatch.StartAny:
		query.Set("resourceVersion", "0")
	default:
		if err := e.needs("initial"); err != nil {
			return nil, err
		}
	}
	if text := q.Labels.String(); text != "" {
		query.Set("labelSelector", text)
	}
	if text := q.Fields.String(); text != "" {
		query.Set("fieldSelector", text)
	}
	if q.Bookmarks {
		query.Set("allowWatchBookmarks", "true")
	}
	u.RawQuery = query.Encode()
	stream, err := e.watch(e.replaced.Network, u, request)
	if err != nil {
		return nil, err
	}
	if trace := e.replaced.Trace; trace != nil && trace.Opened != nil {
		stream.onOpen = func(name string) { trace.Opened(name, q.Version) }
	}
	return &execWatcher{stream, q.Bookmarks}, nil
}

// newRequest returns a request with the settings of the replaced client, or a
// [harness.MissingAbility] if the client under test does not support them.
func (e *execSource) newRequest(ctx context.Context) (r watchRequest, err error) {
	r = watchRequest{Resume: true, Limit: e.replaced.MaxObjectBytes, Transports: e.transports()}
	if n := len(r.Transports); n == 0 || n == 1 && len(e.replaced.Transports) > 1 {
		return r, harness.MissingAbility("the client has no other transport")
	}
	if idle := e.replaced.IdleTimeout; idle > 0 {
		r.IdleTimeout = idle.Milliseconds()
		err = e.needs("idle")
	}
	header := e.replaced.Header
	if header == nil || err != nil {
		return r, err
	}
	if err := e.needs("refresh"); err != nil {
		return r, err
	}
	h, err := header(ctx, false)
	r.Headers, r.Refresh = hookHeaders(h), true
	r.refresh = func() map[string]string {
		// On error, the client gets no headers. The server then refuses the watch, so the case
		// fails.
		fresh, _ := header(context.Background(), true)
		return hookHeaders(fresh)
	}
	return r, err
}

// transports returns the transports of the replaced client that the client under test supports.
func (e *execSource) transports() []string {
	var names []string
	for _, t := range e.replaced.Transports {
		if name := transportAbilities[t.Name()]; slices.Contains(e.can, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// An execWatcher returns the events that a resuming client reports.
type execWatcher struct {
	*execReceiver
	bookmarks bool // whether the case requested bookmarks
}

// Next returns the next event. It never returns more than one. A bookmark that the case did not
// request is dropped, because a client may report the bookmarks that it uses itself.
func (e *execWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	for {
		event, err := e.receive(ctx)
		if err != nil {
			return 0, err
		}
		if dst[0], err = event.Event(); err != nil {
			return 0, err
		}
		if t := dst[0].Type; e.bookmarks || t != listwatch.Bookmark && t != listwatch.Synced {
			return 1, nil
		}
	}
}
