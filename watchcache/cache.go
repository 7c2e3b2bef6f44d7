package watchcache

import (
	"cmp"
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/batchread"
	"github.com/listwatch/listwatch/internal/history"
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
	// Direct lists the data itself. A read of the newest state or of a version that the cache does
	// not reach within a moment calls it with its query, and returns its page unless the cache
	// reaches the version first. A watch then continues from the version of the page when the cache
	// has passed it. So an owner whose feed is late, or says too rarely how far it is, delays no
	// reader. A list of the newest state calls Direct instead of Newest if the state is small,
	// unless another list is doing that. Continue tokens that the cache did not issue are passed to
	// Direct, too. It needs Newest. If Direct is nil, such a read waits up to 3 seconds and then
	// fails with [listwatch.NotYet].
	Direct func(ctx context.Context, q listwatch.Query) (listwatch.Page, error)
	// Verbatim keeps the bytes of objects as they are. If false, the kind and the apiVersion of the
	// description are added to objects that lack them.
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
	newest      batchread.Reader[listwatch.Version]
	revision    *history.Revision
	ready       chan struct{}           // closed when log is set
	failed      context.Context         // ends when the cache fails; waiting reads then return
	fail        context.CancelCauseFunc // ends failed

	log *history.Log // immutable once ready is closed

	feed sync.Mutex        // held by the methods that feed the cache
	last listwatch.Version // the newest version that was fed; guarded by feed

	// incomplete is a version whose readers may lack a change, because Apply received it too late.
	// No watch can resume from it. It is zero if there is no such version.
	incomplete atomic.Uint64

	// listing is true while a reader lists a small state by Options.Direct.
	listing atomic.Bool
	// quiet is true if a reader has waited for an event in vain since the last change.
	quiet atomic.Bool
}

var (
	_ listwatch.Source    = (*Cache)(nil)
	_ listwatch.Describer = (*Cache)(nil)
)

// New returns a Cache for the collection that d describes. The values of d.Fields are read from the
// JSON of the objects; [listwatch.Object.Fields] is ignored.
func New(d listwatch.Description, o Options) *Cache {
	d.Kind, d.APIVersion = cmp.Or(d.Kind, "Object"), cmp.Or(d.APIVersion, "v1")
	c := &Cache{description: d, options: o, revision: new(history.Revision), ready: make(chan struct{})}
	c.failed, c.fail = context.WithCancelCause(context.Background())
	c.newest.Read = c.readNewest
	return c
}

func (c *Cache) logOptions() history.Options {
	return history.Options{
		Retention: c.options.History, Description: c.description, Revision: c.revision,
	}
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
