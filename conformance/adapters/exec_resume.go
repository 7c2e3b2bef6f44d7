package adapters

import (
	"context"
	"net/url"
	"slices"
	"sync"

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
func (e *execSource) Watch(_ context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if err := checkFramings(e.replaced.Framings); err != nil {
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
	names := e.transports()
	if len(names) == 0 || len(names) == 1 && len(e.replaced.Transports) > 1 {
		return nil, harness.MissingAbility("the client has no other transport")
	}
	stream, err := e.watch(e.replaced.Network, u,
		watchRequest{Resume: true, Limit: e.replaced.MaxObjectBytes, Transports: names})
	if err != nil {
		return nil, err
	}
	if trace := e.replaced.Trace; trace != nil && trace.Opened != nil {
		stream.onOpen = func(name string) { trace.Opened(name, q.Version) }
	}
	return &execWatcher{stream}, nil
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
type execWatcher struct{ *execReceiver }

// Next returns the next event. It never returns more than one.
func (e *execWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	event, err := e.receive(ctx)
	if err != nil {
		return 0, err
	}
	if dst[0], err = event.Event(); err != nil {
		return 0, err
	}
	return 1, nil
}

// A replyQueue holds unread replies.
type replyQueue struct {
	mu sync.Mutex
	// Guarded by mu.
	replies []clientReply
	closed  error // the cause of the close; nil while the queue is open

	ready chan struct{} // holds a token if there may be a new reply
}

func newReplyQueue() *replyQueue { return &replyQueue{ready: make(chan struct{}, 1)} }

func (r *replyQueue) add(a clientReply) {
	r.mu.Lock()
	r.replies = append(r.replies, a)
	r.mu.Unlock()
	r.wake()
}

func (r *replyQueue) wake() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// next waits for the next reply of h.
func (r *replyQueue) next(ctx context.Context, h *hookProcess) (clientReply, error) {
	for {
		a, ok, closed := r.take()
		switch {
		case ok:
			return a, nil
		case closed != nil:
			return a, closed
		}
		select {
		case <-r.ready:
		case <-h.done:
			if a, ok, _ := r.take(); ok {
				return a, nil
			}
			return a, h.failure()
		case <-ctx.Done():
			return a, context.Cause(ctx)
		}
	}
}

func (r *replyQueue) take() (a clientReply, ok bool, closed error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.replies) == 0 {
		return a, false, r.closed
	}
	a = r.replies[0]
	r.replies = r.replies[1:]
	return a, true, nil
}

// close closes the queue with a cause, and reports whether it was open.
func (r *replyQueue) close(cause error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil {
		return false
	}
	r.closed, r.replies = cause, nil
	r.wake()
	return true
}
