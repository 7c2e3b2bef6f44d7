package listwatchtest

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/listwatch/listwatch"
)

// List implements [listwatch.Source].
func (s *Source) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	source, err := s.begin(ctx, &s.lists, q)
	if err != nil {
		return listwatch.Page{}, err
	}
	// A continue token of this Source begins with the number of expiries before the token was made.
	made, token, ours := strings.Cut(q.Continue, ":")
	if ours {
		q.Continue = token
	}
	page, err := source.List(ctx, q)
	s.mu.Lock()
	defer s.mu.Unlock()
	isExact := q.Match == listwatch.MatchExact && q.Start == listwatch.StartAt
	if ours && made != strconv.Itoa(s.expiries) || isExact && q.Version < s.floor {
		return listwatch.Page{}, expired(s.floor)
	}
	if err == nil && page.Continue != "" {
		page.Continue = strconv.Itoa(s.expiries) + ":" + page.Continue
	}
	return page, err
}

// Watch implements [listwatch.Source].
func (s *Source) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	source, err := s.begin(ctx, &s.watches, q)
	if err != nil {
		return nil, err
	}
	w, err := source.Watch(ctx, q)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Start == listwatch.StartAt && !q.SendsInitialEvents() && q.Version < s.floor {
		_ = w.Close()
		return nil, expired(s.floor)
	}
	faulty := &watcher{Watcher: w, source: s, ended: make(chan struct{})}
	s.open[faulty] = struct{}{}
	return faulty, nil
}

// begin appends q to the given log of requests, waits for the delay, and returns the Source that
// serves the request, or the error of [Source.Fail].
func (s *Source) begin(ctx context.Context, log *[]listwatch.Query, q listwatch.Query) (listwatch.Source, error) {
	s.mu.Lock()
	*log = append(*log, q)
	s.mu.Unlock()
	s.pause(ctx, nil)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source, s.failure
}

// pause waits for the delay, or until ctx ends or ended is closed.
func (s *Source) pause(ctx context.Context, ended <-chan struct{}) {
	s.mu.Lock()
	d := s.delay
	s.mu.Unlock()
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-ended:
	}
}

// A watcher is a watch of a Source.
type watcher struct {
	listwatch.Watcher // the watch of the other Source
	source            *Source
	ended             chan struct{} // closed by end
	err               error         // why the watch has ended; set before ended is closed
}

// end makes Next return err. It must be called at most once. The caller must hold source.mu.
func (w *watcher) end(err error) {
	w.err = err
	close(w.ended)
	_ = w.Watcher.Close() // ends a Next that waits
}

// Next implements [listwatch.Watcher].
func (w *watcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	n, err := w.Watcher.Next(ctx, dst)
	if err == nil {
		// If ctx ends the pause, the events are still returned, because they would be lost
		// otherwise.
		w.source.pause(ctx, w.ended)
	}
	select {
	case <-w.ended:
		return 0, w.err
	default:
		return n, err
	}
}

// Close implements [listwatch.Watcher].
func (w *watcher) Close() error {
	w.source.mu.Lock()
	delete(w.source.open, w)
	w.source.mu.Unlock()
	return w.Watcher.Close()
}
