package watchcache

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/batchread"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/internal/revision"
)

// Options configure a Cache. The zero Options are usable.
type Options struct {
	// History limits the history that the cache keeps.
	History listwatch.Retention
	// Newest returns a version that covers every write acknowledged before the call, such as the
	// version of the newest row. A read of the newest state calls it, and waits up to 3 seconds
	// until the cache has reached that version. Concurrent reads share a call, whose context ends
	// after 3 seconds, or when the cache fails. An error of Newest becomes the error of the reads;
	// if it is not a [*listwatch.Error], it gets the code [listwatch.Unavailable]. If Newest is
	// nil, a read of the newest state returns the state of the cache.
	Newest func(ctx context.Context) (listwatch.Version, error)
	// Direct lists the data itself. A read of the newest state, or of a given version, waits until
	// the cache has reached the version. If that takes more than a moment, the cache calls Direct
	// with the query of the read. The read then returns the page of Direct, unless the cache
	// reaches the version first. A watch continues from the version of the page when the cache has
	// passed that version. So readers are not delayed by a feed that is late, or that rarely
	// reports its version. If the cache has lacked the newest version lately, a list of a small
	// newest state calls Direct at once instead of Newest, unless another list is doing that. A
	// continue token that the cache did not issue is passed to Direct, too. Direct needs Newest. If
	// Direct is nil, a read waits up to 3 seconds and then fails with [listwatch.NotYet].
	Direct func(ctx context.Context, q listwatch.Query) (listwatch.Page, error)
	// InitialWait returns the time that a watch waits for its version before it calls Direct, if it
	// has more than 100 initial events or 64 KiB of them. A feed that reports its version within
	// this time spares Direct a list of all objects. If InitialWait is nil, or returns zero or a
	// negative time, such a watch calls Direct as soon as other reads. The wait ends after at most
	// 3 seconds. A list of all objects waits, too, if Direct would need at least half of this time
	// for it.
	InitialWait func() time.Duration
	// Verbatim keeps the bytes of objects as they are. If false, the kind and the apiVersion of the
	// description are added to objects in JSON that lack them.
	Verbatim bool
}

// A Cache is a Source that its owner feeds. Its watchers are [listwatch.Poller]s. It is safe for
// concurrent use, and its methods hold no lock while they call Options.Newest or a watcher.
//
// Until the first call of Replace, readers wait up to 3 seconds and then fail with
// [listwatch.Unavailable].
type Cache struct {
	// Immutable after construction.
	description listwatch.Description
	options     Options
	group       *Group // nil if the cache has a feed of its own
	newest      batchread.Reader[listwatch.Version]
	revision    *revision.Revision
	ready       chan struct{}           // closed when log is set
	failed      context.Context         // ends when the cache fails; waiting reads then return
	fail        context.CancelCauseFunc // ends failed

	log *history.Log // immutable once ready is closed

	feed sync.Mutex        // held by the methods that feed the cache
	last listwatch.Version // the newest version that was fed; guarded by feed

	// incomplete is a version whose readers may lack a change, because Apply received that change
	// too late. No watch can resume from this version. It is zero if there is no such version.
	incomplete atomic.Uint64

	// listing is true while a reader uses Options.Direct to list a small state.
	listing atomic.Bool
	// directTime is the time that Direct needed for the last list of all objects, divided by their
	// number. It is zero before the first one.
	directTime atomic.Int64
	// found is the number of times in a row that readers found the newest version of the data in
	// the cache, at most ownVersions.
	found atomic.Int32
}

var (
	_ listwatch.Source    = (*Cache)(nil)
	_ listwatch.Describer = (*Cache)(nil)
	_ listwatch.Uniter    = (*Cache)(nil)
)

// New returns a Cache for the collection that d describes. The values of d.Fields are read from the
// data of the objects; [listwatch.Object.Fields] is ignored.
func New(d listwatch.Description, o Options) *Cache {
	d.Kind, d.APIVersion = cmp.Or(d.Kind, "Object"), cmp.Or(d.APIVersion, "v1")
	c := &Cache{description: d, options: o, revision: new(revision.Revision), ready: make(chan struct{})}
	c.failed, c.fail = context.WithCancelCause(context.Background())
	c.newest.Read = c.readNewest
	return c
}

// List implements [listwatch.Source]. It waits up to 3 seconds for a future version.
func (c *Cache) List(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
	page, err := c.list(ctx, q)
	return unlessFailed(page, err, c)
}

// unlessFailed returns v and err, or the failure of one of the caches that v was read from. A Group
// advances after a failure, so that v may lack changes before its version.
func unlessFailed[T any](v T, err error, caches ...*Cache) (T, error) {
	for _, c := range caches {
		if failure := c.failure(); failure != nil {
			var zero T
			return zero, failure
		}
	}
	return v, err
}

func (c *Cache) list(ctx context.Context, q listwatch.Query) (listwatch.Page, error) {
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
	if at.Start == listwatch.StartAt && !c.isReachedPatiently(ctx, q, at.Version, c.listWait(q)) {
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
	o, err := c.get(ctx, key)
	return unlessFailed(o, err, c)
}

func (c *Cache) get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
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
		if v <= c.Version() {
			c.find()
		}
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

// Describe implements [listwatch.Describer]. An empty Kind is "Object", and an empty APIVersion is
// "v1".
func (c *Cache) Describe() listwatch.Description { return c.description }

// Version returns the version that the cache has reached. It is zero before the first state.
func (c *Cache) Version() listwatch.Version { return c.revision.Version() }

// Stats returns the current sizes of c. Before the first state they are zero.
func (c *Cache) Stats() listwatch.Stats {
	if !c.isReady() {
		return listwatch.Stats{}
	}
	return c.log.Stats()
}

// Lookup returns the object at key, or nil if there is none. In contrast to Get, it returns the
// state of the cache at once.
func (c *Cache) Lookup(key listwatch.Key) *listwatch.Object {
	if !c.isReady() {
		return nil
	}
	return c.log.Get(key)
}

// Objects returns the objects in the state of the cache, in key order.
func (c *Cache) Objects() []*listwatch.Object {
	if !c.isReady() {
		return nil
	}
	return c.log.Objects()
}

// Compact drops the history: after that, a watch from a version before the newest version fails
// with [listwatch.Expired]. Open watches that have read all events continue.
func (c *Cache) Compact() {
	if c.isReady() {
		c.log.Compact()
	}
}

// Union implements [listwatch.Uniter]. The parts must be different caches of one Group, which must
// have its first state.
func (c *Cache) Union(parts ...listwatch.Part) (listwatch.Source, error) {
	logs, caches := make([]history.Part, len(parts)), []*Cache{c}
	for i, p := range parts {
		part, ok := p.Source.(*Cache)
		switch {
		case !ok || c.group == nil || part.group != c.group:
			return nil, invalid("a union needs caches of one Group")
		case !part.isReady():
			return nil, errNotReady
		}
		logs[i], caches = history.Part{Log: part.log, Selection: p.Selection}, append(caches, part)
	}
	u, err := history.NewUnion(c.description.Epoch, logs)
	if err != nil {
		return nil, err
	}
	return &union{u, caches}, nil
}

// Fail ends every watch with err after its remaining events, and makes all later calls fail with
// err. If err is nil or [io.EOF], watches end cleanly, so that clients reconnect, and later calls
// fail with [listwatch.Unavailable]. Only the first call has an effect.
func (c *Cache) Fail(err error) {
	if err == nil {
		err = io.EOF
	}
	c.fail(err)
	c.feed.Lock() // wait for a Replace that is setting the log
	defer c.feed.Unlock()
	if c.isReady() {
		c.log.CloseWithError(context.Cause(c.failed))
	}
}

// failure returns the error for calls after Fail, or nil.
func (c *Cache) failure() error {
	switch err := context.Cause(c.failed); err {
	case nil:
		return nil
	case io.EOF:
		return errClosed
	default:
		return err
	}
}

func (c *Cache) isReady() bool {
	select {
	case <-c.ready:
		return true
	default:
		return false
	}
}
