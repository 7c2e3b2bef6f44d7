package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/internal/history"
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
}

// A DB is a set of collections that share one version counter. It is safe for concurrent use.
type DB struct {
	// Immutable after construction.
	options  Options
	epoch    string
	revision revision.Revision

	mu sync.Mutex // acquired before the mutex of a log, never after it
	// Guarded by mu.
	last        listwatch.Version   // the newest write; revision is advanced to this version
	collections map[string]*backend // by qualified name
}

// Open returns an empty database.
func Open(o Options) *DB {
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
	b := &backend{db: db, Log: history.New(history.Options{
		Retention: db.options.History, Description: s.Description(db.epoch), Revision: &db.revision,
	})}
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
	db *DB
}

var _ store.Backend = (*backend)(nil)

// History returns the log for [store.Collection.Union].
func (b *backend) History() *history.Log { return b.Log }

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
	if c.New != nil {
		r.New = c.New.Seal(r.Version)
	}
	b.Append(r)
	return r, nil
}
