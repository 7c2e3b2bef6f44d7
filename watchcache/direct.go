package watchcache

import (
	"context"
	"errors"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
)

// patience is the time that a reader waits for a version before Options.Direct is called. An event
// that has been sent arrives within this time. If an earlier reader has waited in vain, the version
// probably comes from a write to another collection. Readers then do not wait, until the newest
// version has been in the cache ownVersions times in a row.
const (
	patience    = 20 * time.Millisecond
	ownVersions = 8
)

// sharesVersions reports whether other collections seem to share the versions of the data.
func (c *Cache) sharesVersions() bool { return c.found.Load() < ownVersions }

// find counts that the cache has the newest version.
func (c *Cache) find() {
	if n := c.found.Load(); n < ownVersions {
		c.found.CompareAndSwap(n, n+1)
	}
}

// The newest state of at most smallCount objects with at most smallBytes bytes is requested from
// Options.Direct at once, if the version of Options.Newest would probably not be in the cache.
const (
	smallCount = 100
	smallBytes = 64 << 10
)

// listSmall lists a small newest state with Options.Direct. The page is nil if the state is not
// small, if another reader is listing it, or if Options.Direct fails. The caller then requests the
// newest version, which concurrent readers share.
func (c *Cache) listSmall(ctx context.Context, q listwatch.Query) (*listwatch.Page, error) {
	if !c.isSmall(ctx, q) || !c.listing.CompareAndSwap(false, true) {
		return nil, nil
	}
	defer c.listing.Store(false)
	bounded, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	defer context.AfterFunc(c.failed, cancel)()
	page, err := c.direct(bounded, q)
	switch {
	case err == nil && page.Version <= c.Version():
		c.find()
		return &page, nil
	case err == nil:
		c.found.Store(0)
		return &page, nil
	case ctx.Err() == nil && errors.Is(bounded.Err(), context.DeadlineExceeded):
		return nil, errSlow
	}
	return nil, ctx.Err()
}

// isSmall reports whether q requests the newest state, and the cache has few objects in the
// namespace of q. It returns false for a list that may need several pages, because the cache can
// continue only lists that it has begun.
func (c *Cache) isSmall(ctx context.Context, q listwatch.Query) bool {
	isNewest := q.Start == listwatch.StartNewest && q.Continue == "" && (q.Limit == 0 || q.Limit >= smallCount)
	if !isNewest || c.options.Direct == nil || !c.sharesVersions() || !c.isReady() || c.failure() != nil {
		return false
	}
	return c.selectsFew(ctx, listwatch.Selection{Namespace: q.Namespace})
}

// selectsFew reports whether s selects at most smallCount objects of the cache with at most
// smallBytes bytes.
func (c *Cache) selectsFew(ctx context.Context, s listwatch.Selection) bool {
	s.Projection = listwatch.Projection{} // Direct reads whole objects
	page, err := c.log.List(ctx, listwatch.Query{Selection: s, Start: listwatch.StartAny, Limit: smallCount + 1})
	size := 0
	for _, o := range page.Items {
		size += len(o.Data)
	}
	return err == nil && len(page.Items) <= smallCount && size <= smallBytes
}

// reach waits until the cache has reached v, like Wait. If that takes more than a moment, reach
// also calls Options.Direct with q. If Options.Direct is faster, reach returns its page. The page
// is nil if the cache has reached v.
func (c *Cache) reach(ctx context.Context, v listwatch.Version, q listwatch.Query) (*listwatch.Page, error) {
	if c.options.Direct == nil || c.Version() >= v {
		return nil, c.Wait(ctx, v)
	}
	if !c.sharesVersions() {
		if c.isReachedWithin(ctx, patience, v) {
			return nil, nil
		}
		c.found.Store(0)
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	var page listwatch.Page
	var failure error
	done := make(chan struct{})
	go func() { // ends with waiting
		defer close(done)
		if page, failure = c.direct(waiting, q); failure == nil {
			cancel()
		}
	}()
	err := c.Wait(waiting, v)
	if err == nil {
		return nil, nil
	}
	if c.failure() != nil || ctx.Err() != nil {
		return nil, err
	}
	select { // the cache has not reached v in time
	case <-done:
	case <-c.failed.Done():
		return nil, c.failure()
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case failure != nil:
		return nil, failure
	}
	return &page, nil
}

// direct calls Options.Direct, and converts its objects to the form of the objects in the cache.
func (c *Cache) direct(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	begin := time.Now()
	page, err := c.options.Direct(ctx, q)
	if n := len(page.Items); err == nil && n > 0 && selectsAll(q) {
		c.directTime.Store(int64(time.Since(begin)) / int64(n))
	}
	for i, o := range page.Items {
		page.Items[i] = q.Projection.Reduce(c.complete(o))
	}
	return page, err
}

// isReachedWithin reports whether the cache reaches v within the given time.
func (c *Cache) isReachedWithin(ctx context.Context, d time.Duration, v listwatch.Version) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return c.Wait(ctx, v) == nil
}

// watchAhead opens a watch at a version that the cache has not reached. q is the query, and at is
// the query with that version. The Watcher is nil if the cache can open the watch itself.
func (c *Cache) watchAhead(
	ctx context.Context, log *history.Log, q, at listwatch.Query,
) (listwatch.Watcher, error) {
	if !at.SendsInitialEvents() {
		isNewest := q.Start == listwatch.StartNewest
		if !isNewest && (c.isReachedWithin(ctx, patience, at.Version) || !c.exists(ctx, at.Version)) {
			return nil, nil
		}
		return log.WatchAfter(at, nil)
	}
	if c.isReachedPatiently(ctx, q, at.Version, c.watchWait(ctx, q)) {
		return nil, nil
	}
	state := listwatch.Query{Selection: q.Selection, Start: q.Start, Version: q.Version, Match: q.Match}
	page, err := c.reach(ctx, at.Version, state)
	if page == nil {
		return nil, err
	}
	at.Version = page.Version
	return log.WatchAfter(at, page.Items)
}

// isReachedPatiently reports whether the cache reaches v within the given time, which is zero for
// most reads. q is the query of the read. It waits only for a version that exists.
func (c *Cache) isReachedPatiently(
	ctx context.Context, q listwatch.Query, v listwatch.Version, wait time.Duration,
) bool {
	if wait <= 0 {
		return false
	}
	if c.isReachedWithin(ctx, patience, v) {
		return true
	}
	c.found.Store(0)
	return (q.Start == listwatch.StartNewest || c.exists(ctx, v)) && c.isReachedWithin(ctx, wait, v)
}

// watchWait returns the time that q, a watch with initial events, waits for its version. Only
// watches with many initial events wait.
func (c *Cache) watchWait(ctx context.Context, q listwatch.Query) time.Duration {
	wait := c.initialWait()
	if wait <= 0 || c.selectsFew(ctx, q.Selection) {
		return 0
	}
	return wait
}

// listWait returns the time that q, a list, waits for its version. A list waits only if Direct
// would need at least half of that time for it: then the feed usually reports the version before
// Direct would respond.
func (c *Cache) listWait(q listwatch.Query) time.Duration {
	perObject := time.Duration(c.directTime.Load())
	if perObject == 0 || !selectsAll(q) {
		return 0
	}
	wait := c.initialWait()
	if needed := perObject * time.Duration(c.log.Stats().Objects); needed < wait/2 {
		return 0
	}
	return wait
}

// selectsAll reports whether q is a list of all objects in one page.
func selectsAll(q listwatch.Query) bool {
	return q.Limit == 0 && q.Continue == "" && q.Selection.Key() == ""
}

// initialWait returns the result of Options.InitialWait.
func (c *Cache) initialWait() time.Duration {
	if c.options.InitialWait == nil {
		return 0
	}
	return c.options.InitialWait()
}

// exists reports whether the data has reached version v.
func (c *Cache) exists(ctx context.Context, v listwatch.Version) bool {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	newest, err := c.newest.Get(ctx)
	return err == nil && newest >= v
}
