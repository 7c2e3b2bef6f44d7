package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/expiry"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/internal/hooks"
	"github.com/listwatch/listwatch/internal/revision"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/typed"
)

// Options configure a database. The zero value is ready to use.
type Options struct {
	// History limits the history of each collection.
	History listwatch.Retention
	// StartVersion is the version of the empty database; the first write has the next version. If
	// zero, the wall clock in microseconds is used. With any other value, a restarted program uses
	// the same versions again. This is meant for tests that need the same versions every time.
	StartVersion listwatch.Version
	// Trace receives events for metrics and logs. If nil, they are dropped.
	Trace *Trace
}

// A Trace has hooks for metrics and logs. A hook may be nil, and must return quickly.
type Trace struct {
	// Expired is called after an object was deleted at the end of its TTL. o is its last state, at
	// the version of the delete.
	Expired func(collection string, o *listwatch.Object)
}

// A DB is a set of collections that share one version counter. It is safe for concurrent use.
type DB struct {
	// Immutable after construction.
	options  Options
	epoch    string
	revision revision.Revision
	now      func() time.Time // the clock of TTLs; not nil only in tests

	mu sync.Mutex // acquired before the mutex of a log, never after it
	// Guarded by mu.
	last        listwatch.Version   // the newest write; revision is advanced to this version
	collections map[string]*backend // by qualified name
}

// Open returns an empty database.
func Open(o Options) *DB {
	o.Trace = hooks.Fill(o.Trace)
	start := cmp.Or(o.StartVersion, listwatch.Version(time.Now().UnixMicro()))
	db := &DB{options: o, epoch: rand.Text(), last: start, collections: make(map[string]*backend)}
	db.revision.Advance(start)
	return db
}

// New returns a collection of T in a database of its own. Its kind is the name of T, it has no
// namespaces, and all options have their defaults. To change them, use [Open] and a
// [typed.Collection]. New panics unless T passes [typed.Check]: it must embed [listwatch.Metadata]
// with the tag `json:"metadata"`.
func New[T any]() typed.Collection[T] {
	err := typed.Check[T]()
	if err != nil {
		panic("memory.New: " + err.Error())
	}
	c, err := Open(Options{}).Collection(store.SpecOf[T]())
	if err != nil {
		panic("memory.New: " + err.Error())
	}
	return typed.Collection[T]{Store: c}
}

// Collection adds the collection that s declares. If the database has a collection of the
// same plural and group, the error has code AlreadyExists.
func (db *DB) Collection(s store.CollectionSpec) (*store.Collection, error) {
	s = s.WithDefaults()
	name := s.QualifiedName()
	// The mutex keeps writes to other collections out while history.New reads the start
	// version of the log from the revision.
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.collections[name] != nil {
		return nil, &listwatch.Error{
			Code: listwatch.AlreadyExists, Message: fmt.Sprintf("the database has a collection %q", name),
		}
	}
	b := &backend{db: db, name: name, Log: history.New(history.Options{
		Retention: db.options.History, Description: s.Description(db.epoch), Revision: &db.revision,
	})}
	b.lifetimes = expiry.New(b.expire, db.now)
	db.collections[name] = b
	return store.New(s, b), nil
}

// Version returns the version of the newest write. Before the first write it returns the
// start version.
func (db *DB) Version() listwatch.Version { return db.revision.Version() }

// Epoch returns the random text that distinguishes this database from all others.
func (db *DB) Epoch() string { return db.epoch }

// Compact drops all history: a watch that starts at any version but the newest is Expired.
// Open watches that have read every event continue.
func (db *DB) Compact() {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, b := range db.collections {
		b.Compact()
	}
}

// A backend keeps one collection. It serves lists and watches from its log.
type backend struct {
	*history.Log
	db        *DB
	name      string
	lifetimes *expiry.Queue[listwatch.Key]
	expired   atomic.Uint64 // the number of objects that expire has deleted
}

var _ store.Renewer = (*backend)(nil)

// History returns the log for [store.Collection.Union].
func (b *backend) History() *history.Log { return b.Log }

// Stats returns the sizes of the collection.
func (b *backend) Stats() listwatch.Stats {
	s := b.Log.Stats()
	s.Expiring, s.Expired = b.lifetimes.Len(), b.expired.Load()
	return s
}

func (b *backend) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return b.Log.Get(key), nil
}

func (b *backend) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return b.write(c)
}

// Renew implements [store.Renewer].
func (b *backend) Renew(ctx context.Context, o *listwatch.Object) error {
	return b.lifetimes.Renew(ctx, o.Key, func() error {
		return store.Change{Key: o.Key, Old: o}.Check(b.Log.Get(o.Key))
	})
}

// expire deletes the objects with the given keys, unless they are renewed or written meanwhile.
func (b *backend) expire(due []listwatch.Key) {
	for _, key := range due {
		old := b.Log.Get(key)
		if old == nil || !b.lifetimes.Claim(key) {
			continue
		}
		// If this fails, another write has changed the object, and ended the claim.
		deleted, err := b.write(store.Change{Key: key, Old: old})
		if err == nil {
			b.expired.Add(1)
			b.db.options.Trace.Expired(b.name, deleted)
		}
	}
}

func (b *backend) write(c store.Change) (*listwatch.Object, error) {
	r, err := b.append(c)
	if err != nil {
		return nil, err
	}
	// Advance calls the functions that wait for the version, so the mutex must not be held
	// here. If another writer advances the revision further before this call, that is
	// correct too: both records are in the log, so both versions are visible.
	b.db.revision.Advance(r.Version)
	if r.New == nil {
		return r.Old.At(r.Version), nil
	}
	return r.New, nil
}

func (b *backend) append(c store.Change) (r history.Record, err error) {
	b.db.mu.Lock()
	defer b.db.mu.Unlock()
	r.Old = b.Log.Get(c.Key)
	if err := c.Check(r.Old); err != nil {
		return r, err
	}
	b.db.last++
	r.Version = b.db.last
	var ttl time.Duration
	if c.New != nil {
		r.New, ttl = c.New.Seal(r.Version), c.New.TTL
	}
	b.Append(r)
	b.lifetimes.Set(c.Key, ttl)
	return r, nil
}
