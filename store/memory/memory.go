// Package memory is the store that needs nothing: collections in memory, with their history for watchers.
//
// [New] is the quickest way in: one collection of one Go type. [Open] makes a database of any number of collections.
//
//	flags := memory.New[Flag]()
//	flag, err := flags.Create(ctx, Flag{Metadata: listwatch.Metadata{Name: "dark-mode"}, Enabled: true})
//
// # Versions
//
// All collections of a database share one counter, so that a version tells before from after across them. It starts at the wall
// clock in microseconds: a program that starts again does not use a version twice, as long as the clock does not step back and
// writes stay under a million a second. Each start has a random epoch beside, by which clients notice that the state is another one.
//
// Nothing survives the process. History ends where [Options] says; a watch from before that is Expired.
package memory

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
	"github.com/listwatch/listwatch/store"
)

// Options are what a database is made with. The zero Options are sound.
type Options struct {
	// HistoryAge is how long a write can be watched from, and longer while nothing else is written. Zero: 5 minutes;
	// negative: for ever.
	HistoryAge time.Duration
	// HistoryBytes is how many bytes the history of each collection may hold beside its current objects. Zero: 256 MiB;
	// negative: unlimited. The newest write stays, however large.
	HistoryBytes int64
	// FrameBytes is how many of these bytes may be encoded events, kept for the next watcher, and how many more those with
	// which watches begin. Zero: a quarter of HistoryBytes; negative: unlimited.
	FrameCacheBytes int64
	// Start is the version of the empty database; the first write has the next one. Zero: the wall clock in microseconds.
	// Anything else makes a program that starts again use its versions again, and is for tests that want the same ones each time.
	StartVersion listwatch.Version
}

// A DB is a set of collections with one counter of versions. It is safe for concurrent use.
type DB struct {
	// Immutable after construction.
	options Options
	epoch   string
	head    history.Revision

	mu sync.Mutex // taken before the locks of a log, never after
	// Guarded by mu.
	last        listwatch.Version   // of the newest write, or where the versions began; Head follows
	collections map[string]*backend // by qualified name
}

// Open returns an empty database.
func Open(o Options) *DB {
	start := o.StartVersion
	if start == 0 {
		start = listwatch.Version(time.Now().UnixMicro())
	}
	db := &DB{options: o, epoch: rand.Text(), last: start, collections: make(map[string]*backend)}
	db.head.Advance(start)
	return db
}

// New returns a collection of T in a database of its own: the kind is the name of T, everything else is the default. T embeds
// [listwatch.Metadata] with the tag `json:"metadata"`; a T without the tag is a mistake in the program, and New panics. Where
// options are to be given, see [Open] and [store.NewTyped].
func New[T any, P store.MetadataPointer[T]]() *store.Typed[T] {
	c, err := Open(Options{}).Collection(store.SpecOf[T]())
	if err != nil {
		panic("memory.New: " + err.Error())
	}
	t, err := store.NewTyped[T, P](c)
	if err != nil {
		panic("memory.New: " + err.Error())
	}
	return t
}

// Collection adds the collection that r declares. A second one of the same plural and group is an error of code AlreadyExists.
func (db *DB) Collection(r store.CollectionSpec) (*store.Collection, error) {
	r = r.WithDefaults()
	name := r.QualifiedName()
	// Under mu, so that no write falls between the start of the log and the version it starts at.
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.collections[name] != nil {
		return nil, &listwatch.Error{Code: listwatch.AlreadyExists, Message: fmt.Sprintf("the database has a collection %q", name)}
	}
	b := &backend{db: db, Log: history.New(history.Options{
		MaxAge: db.options.HistoryAge, MaxBytes: db.options.HistoryBytes, FrameCacheBytes: db.options.FrameCacheBytes,
		Description: r.Description(db.epoch), Revision: &db.head,
	})}
	db.collections[name] = b
	return store.New(r, b), nil
}

// Version returns that of the newest write; before the first, the one that the database began with.
func (db *DB) Version() listwatch.Version { return db.head.Version() }

// Epoch returns the random text that tells this database from those of other starts.
func (db *DB) Epoch() string { return db.epoch }

// Compact forgets all history: a watch from any version before the newest is Expired. Watches that have read everything go on.
func (db *DB) Compact() {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, b := range db.collections {
		b.Compact()
	}
}

// A backend keeps one collection. Lists and watches are those of the log.
type backend struct {
	*history.Log
	db *DB
}

var _ store.Backend = (*backend)(nil)

// Get returns the newest object at key, or nil.
func (b *backend) Get(ctx context.Context, key listwatch.Key) (*listwatch.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return b.Log.Get(key), nil
}

// Commit writes c unless somebody else was first.
func (b *backend) Commit(ctx context.Context, c store.Change) (*listwatch.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	change, err := b.append(c)
	if err != nil {
		return nil, err
	}
	// Outside the lock, because those who wait for the version are called from here. Of two writers the later may come first:
	// then the earlier version is visible already, for both have been appended.
	b.db.head.Advance(change.Version)
	if c.New == nil {
		return change.Old.At(change.Version), nil
	}
	return change.New, nil
}

func (b *backend) append(c store.Change) (change history.Record, err error) {
	b.db.mu.Lock()
	defer b.db.mu.Unlock()
	change.Old = b.Log.Get(c.Key)
	if !same(change.Old, c.Old) {
		return change, &listwatch.Error{Code: listwatch.Conflict, Message: "the object has changed"}
	}
	if change.Old == nil && c.New == nil {
		return change, &listwatch.Error{Code: listwatch.NotFound, Message: "there is nothing to delete"}
	}
	b.db.last++
	change.Version = b.db.last
	if c.New != nil {
		change.New = c.New.Seal(change.Version)
	}
	b.Append(change)
	return change, nil
}

// same reports whether two states of one key are one.
func same(a, b *listwatch.Object) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Version == b.Version
}
