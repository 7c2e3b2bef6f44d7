package watchcache

import (
	"context"
	"errors"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
)

// List implements [listwatch.Source]. It waits up to 3 seconds for a future version.
func (c *Cache) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	if page, err := c.listSmall(ctx, q); page != nil || err != nil {
		return valueOf(page), err
	}
	log, at, err := c.prepare(ctx, q)
	if err != nil {
		return listwatch.Page{}, err
	}
	if q.Continue != "" {
		return c.continueList(ctx, log, at)
	}
	if at.Start == listwatch.StartAt {
		if page, err := c.reach(ctx, at.Version, q); page != nil || err != nil {
			return valueOf(page), err
		}
	}
	return log.List(ctx, at)
}

// continueList returns the next page of a list. Its token may come from another replica that was
// ahead of this one, or from Options.Direct. If the cache does not reach the version of the token,
// the list reports that the token has expired.
func (c *Cache) continueList(ctx context.Context, log *history.Log, q listwatch.Query) (listwatch.Page, error) {
	from, err := history.ParseContinueToken(q.Continue)
	if err != nil && c.options.Direct != nil {
		return c.direct(ctx, q)
	}
	if err == nil {
		if page, _ := c.reach(ctx, from.Version, q); page != nil {
			return *page, nil
		}
	}
	return log.List(ctx, q)
}

func valueOf(page *listwatch.Page) (value listwatch.Page) {
	if page != nil {
		value = *page
	}
	return value
}

// Watch implements [listwatch.Source]. If the watch starts at a future version, the Watcher waits
// for it up to 3 seconds.
func (c *Cache) Watch(ctx context.Context, q listwatch.Query) (listwatch.Watcher, error) {
	q.Continue = "" // a watch ignores it
	log, at, err := c.prepare(ctx, q)
	if err != nil {
		return nil, err
	}
	if at.Start == listwatch.StartAt && c.Version() < at.Version && c.options.Direct != nil {
		if w, err := c.watchAhead(ctx, log, q, at); w != nil || err != nil {
			return w, err
		}
	}
	w, err := log.Watch(ctx, at)
	// Check incomplete only when the watch is open: if Apply sets it after the check, the owner
	// must call Replace, which ends the open watch.
	v := listwatch.Version(c.incomplete.Load())
	if err == nil && v != 0 && at.Start == listwatch.StartAt && at.Version == v && !at.SendsInitialEvents() {
		_ = w.Close() // it has returned no event
		return nil, incompleteVersion(v)
	}
	return w, err
}

// Get returns the newest object at key, or nil if there is none. It waits like a List of the newest
// state.
func (c *Cache) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	log, q, err := c.prepare(ctx, listwatch.Query{})
	if err != nil {
		return nil, err
	}
	page, err := c.reach(ctx, q.Version, listwatch.Query{
		Selection: listwatch.Selection{Namespace: key.Namespace, Name: key.Name},
	})
	switch {
	case err != nil:
		return nil, err
	case page == nil:
		return log.Get(key), nil
	case len(page.Items) == 0:
		return nil, nil
	}
	return page.Items[0], nil
}

// Wait returns nil when the cache has reached v. A writer that knows the version of its own write
// can then read that write from the cache, also with Lookup. After 3 seconds Wait returns an error
// of code [listwatch.NotYet]. If ctx ends first, it returns the error of ctx.
func (c *Cache) Wait(ctx context.Context, v listwatch.Version) error {
	if err := c.failure(); err != nil {
		return err
	}
	if c.revision.Version() < v {
		if err := c.awaitVersion(ctx, v); err != nil {
			return err
		}
	}
	if v > 0 {
		<-c.ready // the first Replace advances the revision, and closes ready right after that
	}
	return nil
}

// awaitVersion waits until the revision has reached v.
func (c *Cache) awaitVersion(ctx context.Context, v listwatch.Version) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.failed, cancel)()
	err := c.revision.Wait(waiting, v)
	if err != nil && ctx.Err() == nil && c.failure() != nil {
		return c.failure()
	}
	return err
}

// prepare waits for the first state. If q requests the newest state and Options.Newest is set, the
// returned query requests a state at the version from Options.Newest or later.
func (c *Cache) prepare(ctx context.Context, q listwatch.Query) (*history.Log, listwatch.Query, error) {
	if err := c.awaitState(ctx); err != nil {
		return nil, q, err
	}
	if q.Start != listwatch.StartNewest || q.Continue != "" || c.options.Newest == nil {
		return c.log, q, nil
	}
	bounded, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	v, err := c.newest.Get(bounded)
	switch {
	case err == nil:
	case ctx.Err() == nil && bounded.Err() != nil && errors.Is(err, bounded.Err()):
		return nil, q, errSlow
	default:
		return nil, q, err
	}
	return c.log, notOlderThan(q, v), nil
}

// notOlderThan converts q, which requests the newest state, to a query for a state at v or later.
func notOlderThan(q listwatch.Query, v listwatch.Version) listwatch.Query {
	initial := listwatch.InitialEventsNo
	if q.SendsInitialEvents() {
		initial = listwatch.InitialEventsYes
	}
	q.Start, q.Version, q.Match, q.InitialEvents = listwatch.StartAt, v, listwatch.MatchNotOlderThan, initial
	return q
}

// readNewest calls Options.Newest for all reads that wait for it.
func (c *Cache) readNewest() (listwatch.Version, error) {
	ctx, cancel := context.WithTimeoutCause(c.failed, readTimeout, errSlow)
	defer cancel()
	v, err := c.options.Newest(ctx)
	switch failure := c.failure(); {
	case failure != nil:
		return 0, failure
	case err == nil && v == 0:
		return 0, newestError(errors.New("it is 0, but versions start at 1, also for an empty collection"))
	case err == nil:
		return v, nil
	case errors.Is(err, context.DeadlineExceeded):
		return 0, errSlow
	}
	return 0, newestError(err)
}

func (c *Cache) awaitState(ctx context.Context) error {
	if !c.isReady() {
		timer := time.NewTimer(readTimeout)
		defer timer.Stop()
		select {
		case <-c.ready:
		case <-c.failed.Done():
		case <-timer.C:
			return errNotReady
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return c.failure()
}
