package history

import (
	"context"
	"time"

	"github.com/listwatch/listwatch"
)

// Watch implements [listwatch.Source]. The Watcher is a Poller, and has a method PollFrames like
// that of a [Cursor]. Watch does not wait. If q starts at a version that is not reached within 3
// seconds, the Watcher fails.
func (l *Log) Watch(_ context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	pass := newPass(q)
	c, err := l.open(q, pass)
	if err != nil {
		return nil, err
	}
	return pace(c, pass, l.revision), nil
}

// open returns a cursor for the selection of q. If pass is not nil, the cursor reads only within
// the pass.
func (l *Log) open(q listwatch.Query, pass *pass) (*Cursor, error) {
	if err := l.description.Check(&q.Selection); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.join(q, pass)
	s := start{
		atVersion: q.Start == listwatch.StartAt, version: q.Version,
		initialEvents: q.SendsInitialEvents(), bookmarks: q.Bookmarks,
	}
	if q.Bookmarks && q.Since.ID == c.live.feed.stateID {
		s.since = q.Since.Version
	}
	if s.atVersion && s.version > l.version() {
		c.stage = l.await(&c.live, s, false)
		return &c.Cursor, nil
	}
	first, err := c.live.begin(&s)
	if err != nil {
		l.feeds.leave(c.live.feed, time.Now())
		return nil, err
	}
	c.stage = first
	return &c.Cursor, nil
}

// A logCursor is a Cursor of a log, and its last stage.
type logCursor struct {
	Cursor
	live live
}

// join returns a cursor that has joined the feed of q and has no stage yet. l.mu must be held.
func (l *Log) join(q listwatch.Query, pass *pass) *logCursor {
	c := new(logCursor)
	c.live.feed, c.live.pass = l.feeds.join(newSelection(q.Selection), l.version()), pass
	c.last = &c.live
	if pass != nil {
		c.live.feed.conflate()
	}
	return c
}

// WatchAfter returns a Watcher like Watch, for a reader whose state at q.Version does not come from
// this log. If q requests initial events, they are the given objects, which the Watcher may sort.
// The Watcher waits for the version as long as it takes, so the database must have had it.
func (l *Log) WatchAfter(q listwatch.Query, objects []*listwatch.Object) (listwatch.Watcher, error) {
	if err := l.description.Check(&q.Selection); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	pass := newPass(q)
	c := l.join(q, pass)
	c.stage = l.await(&c.live, start{atVersion: true, version: q.Version}, true)
	if q.SendsInitialEvents() {
		c.stage = c.live.feed.given(&q, objects, c.stage)
	}
	return pace(&c.Cursor, pass, l.revision), nil
}
