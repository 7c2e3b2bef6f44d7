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
func (s *execSource) List(context.Context, listwatch.Query) (listwatch.Page, error) {
	return listwatch.Page{}, harness.MissingAbility("the control hook has no lists")
}

// Watch asks the client to watch and to resume until the watch is closed.
func (s *execSource) Watch(_ context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if err := checkFramings(s.replaced.Framings); err != nil {
		return nil, err
	}
	u, err := url.Parse(s.replaced.URL)
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
	names := s.transports()
	if len(names) == 0 || len(names) == 1 && len(s.replaced.Transports) > 1 {
		return nil, harness.MissingAbility("the client has no other transport")
	}
	stream, err := s.watch(s.replaced.Network, u, watchRequest{Resume: true, Limit: s.replaced.MaxObjectBytes, Transports: names})
	if err != nil {
		return nil, err
	}
	if trace := s.replaced.Trace; trace != nil && trace.Opened != nil {
		stream.onOpen = func(name string) { trace.Opened(name, q.Version) }
	}
	return &execWatcher{stream}, nil
}

// transports returns the transports of the replaced client that the client under test supports.
func (s *execSource) transports() []string {
	var names []string
	for _, t := range s.replaced.Transports {
		if name := transportAbilities[t.Name()]; slices.Contains(s.can, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// An execWatcher returns the events that a resuming client reports.
type execWatcher struct{ *execReceiver }

// Next returns the next event. It never returns more than one.
func (w *execWatcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	e, err := w.receive(ctx)
	if err != nil {
		return 0, err
	}
	if dst[0], err = e.Event(); err != nil {
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

func (q *replyQueue) add(a clientReply) {
	q.mu.Lock()
	q.replies = append(q.replies, a)
	q.mu.Unlock()
	q.wake()
}

func (q *replyQueue) wake() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// next waits for the next reply of h.
func (q *replyQueue) next(ctx context.Context, h *hookProcess) (clientReply, error) {
	for {
		a, ok, closed := q.take()
		switch {
		case ok:
			return a, nil
		case closed != nil:
			return a, closed
		}
		select {
		case <-q.ready:
		case <-h.done:
			if a, ok, _ := q.take(); ok {
				return a, nil
			}
			return a, h.failure()
		case <-ctx.Done():
			return a, context.Cause(ctx)
		}
	}
}

func (q *replyQueue) take() (a clientReply, ok bool, closed error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.replies) == 0 {
		return a, false, q.closed
	}
	a = q.replies[0]
	q.replies = q.replies[1:]
	return a, true, nil
}

// close closes the queue with a cause, and reports whether it was open.
func (q *replyQueue) close(cause error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed != nil {
		return false
	}
	q.closed, q.replies = cause, nil
	q.wake()
	return true
}
