package slicesource

import (
	"context"
	"io"
	"time"

	"github.com/listwatch/listwatch"
)

// Watch implements [listwatch.Source].
func (s *Source) Watch(_ context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	if err := q.Fields.Check(s.description.Fields); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &watcher{source: s, query: q, at: s.newest, start: q.SendsInitialEvents()}
	if q.Start == listwatch.StartAt {
		w.at = q.Version
	}
	if w.at > s.newest {
		time.AfterFunc(versionTimeout, w.giveUp)
	} else {
		w.begin()
	}
	return w, nil
}

// A watcher is a position in the writes. It is a [listwatch.Poller], so watchserver needs no
// goroutine for it and can send bookmarks. Other Watchers work with watchserver, too.
type watcher struct {
	// Immutable after construction.
	source *Source
	query  listwatch.Query

	// Guarded by source.mu.
	at      listwatch.Version // all writes up to this version have been read
	start   bool              // the initial events have not been taken yet
	initial []listwatch.Event // the remaining initial events
	err     error             // the reason for the end of the watch; nil while it is open
}

var _ listwatch.Poller = (*watcher)(nil)

// Poll implements [listwatch.Poller].
func (w *watcher) Poll(dst []listwatch.Event) (n int, err error) {
	s := w.source
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.err != nil || w.at > s.newest {
		return 0, w.err
	}
	w.begin()
	if len(w.initial) > 0 {
		n = copy(dst, w.initial)
		w.initial = w.initial[n:]
		return n, nil
	}
	if w.at < s.floor {
		return 0, expired(w.at, s.floor)
	}
	for _, write := range s.writes[s.after(w.at):] {
		if n == len(dst) {
			break
		}
		w.at = write.Version
		if e, ok := event(w.query.Selection, write); ok {
			dst[n] = e
			n++
		}
	}
	return n, nil
}

// Wake implements [listwatch.Poller].
func (w *watcher) Wake(f func()) {
	s := w.source
	s.mu.Lock()
	idle := w.err == nil && len(w.initial) == 0 && (w.at > s.newest || w.at == s.newest && !w.start)
	if idle {
		s.wakers[w] = f
	}
	s.mu.Unlock()
	if !idle {
		f()
	}
}

// Progress implements [listwatch.Poller].
func (w *watcher) Progress() (p listwatch.Progress) {
	w.source.mu.Lock()
	defer w.source.mu.Unlock()
	if !w.start && len(w.initial) == 0 {
		p.Version = w.at
	}
	return p
}

// Next implements [listwatch.Watcher].
func (w *watcher) Next(ctx context.Context, dst []listwatch.Event) (int, error) {
	for {
		if n, err := w.Poll(dst); n > 0 || err != nil {
			return n, err
		}
		ready := make(chan struct{})
		w.Wake(func() { close(ready) })
		select {
		case <-ready:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// Close implements [listwatch.Watcher].
func (w *watcher) Close() error {
	w.end(io.EOF)
	return nil
}

// giveUp ends the watch with NotYet if the source has not reached the version to start from.
func (w *watcher) giveUp() {
	w.source.mu.Lock()
	at, newest := w.at, w.source.newest
	w.source.mu.Unlock()
	if at > newest {
		w.end(notYet(at, newest))
	}
}

// end ends the watch with err, unless it has ended already.
func (w *watcher) end(err error) {
	w.source.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	wake := w.source.wakers[w]
	delete(w.source.wakers, w)
	w.source.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// begin takes the initial events, unless it has taken them before or the query requests none. The
// caller must hold source.mu.
func (w *watcher) begin() {
	if !w.start {
		return
	}
	s := w.source
	w.start, w.at = false, s.newest
	for _, o := range s.objects(w.query.Selection, s.newest) {
		w.initial = append(
			w.initial, listwatch.Event{Type: listwatch.Added, Initial: true, Object: o, Version: o.Version})
	}
	if w.query.Bookmarks {
		w.initial = append(w.initial, listwatch.NewSynced(s.description, listwatch.State{Version: s.newest}, 0))
	}
}

// event returns the event that a write causes in s. ok is false if the write causes no event.
func event(s listwatch.Selection, w Write) (e listwatch.Event, ok bool) {
	e = listwatch.Event{Type: s.Effect(w.Old, w.New), Version: w.Version, Object: w.New}
	switch e.Type {
	case 0:
		return e, false
	case listwatch.Deleted:
		e.Object = w.Old.At(w.Version)
	}
	e.Object = s.Projection.Reduce(e.Object)
	return e, true
}
