package adapters

import (
	"context"
	"net/url"
	"sync"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/client"
	"github.com/listwatch/listwatch/conformance/cases"
)

// An execSource is a client that resumes by itself.
type execSource struct {
	*execClient
	ours *client.Remote
}

// List can't be asked of a client that watches.
func (s *execSource) List(context.Context, listwatch.Query) (listwatch.Page, error) {
	return listwatch.Page{}, cases.MissingAbility("the client is not asked for lists")
}

// Watch has the client watch, and resume until it is told to close.
func (s *execSource) Watch(_ context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	u, err := url.Parse(s.ours.URL)
	if err != nil {
		return nil, err
	}
	query := url.Values{"watch": {"1"}}
	switch q.Start {
	case listwatch.At:
		query.Set("resourceVersion", q.Version.String())
	case listwatch.Any:
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
	stream, err := s.watch(s.ours.Network, u, watchRequest{Resume: true})
	if err != nil {
		return nil, err
	}
	return &execWatcher{stream}, nil
}

// An execWatcher reads what a client that resumes has seen.
type execWatcher struct{ *execStream }

// Next returns the next event.
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

// A queue holds answers that nobody has read yet.
type queue struct {
	mu sync.Mutex
	// Guarded by mu.
	answers []clientAnswer
	closed  error // why nobody reads it any more; nil: somebody may

	more chan struct{} // holds one token where there may be something new
}

func newQueue() *queue { return &queue{more: make(chan struct{}, 1)} }

func (q *queue) add(a clientAnswer) {
	q.mu.Lock()
	q.answers = append(q.answers, a)
	q.mu.Unlock()
	q.wake()
}

func (q *queue) wake() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// next waits for an answer of h.
func (q *queue) next(ctx context.Context, h *hook) (clientAnswer, error) {
	for {
		a, ok, closed := q.take()
		switch {
		case ok:
			return a, nil
		case closed != nil:
			return a, closed
		}
		select {
		case <-q.more:
		case <-h.over:
			if a, ok, _ := q.take(); ok {
				return a, nil
			}
			return a, h.failure()
		case <-ctx.Done():
			return a, context.Cause(ctx)
		}
	}
}

func (q *queue) take() (a clientAnswer, ok bool, closed error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.answers) == 0 {
		return a, false, q.closed
	}
	a = q.answers[0]
	q.answers = q.answers[1:]
	return a, true, nil
}

// close ends the queue, for a cause, and reports whether it was open.
func (q *queue) close(cause error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed != nil {
		return false
	}
	q.closed, q.answers = cause, nil
	q.wake()
	return true
}
