package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/listwatch/listwatch"
	"github.com/listwatch/listwatch/store"
	"github.com/listwatch/listwatch/watchcache"
)

// The parts of this package:
//
//	Open ─→ examination: the checks, and what must be created
//	  │
//	  ↓
//	 DB ─────→ tables ─────→ collections ─────→ caches, which share one watchcache.Group
//	  │          ↑                │
//	  ↓          │                └─→ rowWrite: a write by SQL, which waits for its event
//	follower ────┘
//	  load: slot, snapshot ─→ tableState ─→ difference
//	  stream: messages ─→ transaction ─→ outcome for each table
//
// A shape describes the columns of a table, and so how a row becomes an object. The table of
// documents is a table whose rows belong to several collections, and have a column with the whole
// object.

// A DB follows tables of a database. It is safe for concurrent use.
type DB struct {
	// Immutable after Open.
	config  *pgconn.Config
	options Options
	epoch   string
	tables  []*table
	group   *watchcache.Group
	reads   *pool // a single connection
	writes  *pool
	cancel  context.CancelFunc
	done    chan struct{} // closed when the DB no longer follows the tables

	feeding sync.Mutex // held while the tables change; acquired before mu

	mu    sync.Mutex
	stats Stats // guarded by mu
	err   error // guarded by mu: the reason of the end, or of the current interruption
	// Guarded by mu: the position of PostgreSQL's log at the last check of the schema, and the time
	// of the oldest check whose position the tables have not reached.
	written      lsn
	writtenSince time.Time

	mayNotFlush atomic.Bool // the role may not call pg_logical_emit_message
}

// Stats are counters of a [DB], and its progress.
type Stats struct {
	// Loads is the number of times that all tables were read. More than one load per hour indicates
	// a problem.
	Loads int
	// Resumes is the number of times that the log was followed again without reading the tables,
	// with the help of Options.Anchor.
	Resumes int
	// Transactions and Changes count what was applied to the tables since Open.
	Transactions, Changes uint64
	// Rows is the number of objects in all tables and collections, and Hidden the number of their
	// rows that are not objects; see [Trace.RowHidden].
	Rows, Hidden int
	// Version is the version that the tables have reached.
	Version listwatch.Version
	// LagBytes is the length of the log between the tables and the position of PostgreSQL at the
	// last check of the schema, and Lag the time for which the tables have not reached such a
	// position. Both are zero without checks of the schema.
	LagBytes uint64
	Lag      time.Duration
	// RetainedBytes is the length of the log that PostgreSQL retained for this DB or for the anchor
	// at the last check of the schema.
	RetainedBytes uint64
}

// noteWritten records the position of PostgreSQL's log, and the length of the log that it retains.
// It reports whether the tables have not reached the position of the last call.
func (db *DB) noteWritten(at lsn, retained uint64) (lags bool) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if lags = db.group.Version() < db.written.version(); !lags {
		db.writtenSince = time.Now()
	}
	db.written, db.stats.RetainedBytes = at, retained
	return lags
}

// ErrReplaced is the error of a DB that has ended because the versions of the database start over:
// a standby was promoted, or the DSN leads to another cluster. The program must open the database
// again, and its clients list again.
var ErrReplaced = errors.New("the database was replaced by another one, such as a promoted standby")

// Open checks the server and the tables, reads them, and follows their changes until ctx ends or
// the DB is closed. If a table cannot be served, Open returns an error before it changes anything
// in the database. The error contains the problems of all tables. Without tables, the DB has
// documents only; see [Options.Documents]. dsn is a URL or a list of keywords, as in PostgreSQL's
// programs.
//
// Errors have the text of PostgreSQL. The errors of the Sources do not.
func Open(ctx context.Context, dsn string, o Options, tables ...Table) (*DB, error) {
	e, err := newExamination(dsn, o, tables)
	if err == nil {
		err = e.connect(ctx)
	}
	if err != nil {
		return nil, err
	}
	db := &DB{
		config: e.config, options: e.options, group: new(watchcache.Group), done: make(chan struct{}),
		reads: newPool(e.config, 1), writes: newPool(e.config, maxWriters),
	}
	if err := db.start(ctx, e); err != nil {
		_ = e.Close(ctx) // return the error of start
		return nil, err
	}
	return db, nil
}

// start reads the tables, over the connection of e, and then follows them until ctx ends.
func (db *DB) start(ctx context.Context, e *examination) (err error) {
	if err := e.alone(ctx, func() error { return e.prepare(ctx) }); err != nil {
		return err
	}
	if db.epoch, err = e.epoch(ctx); err != nil {
		return err
	}
	for _, config := range e.tables {
		db.add(config)
	}
	f := &follower{DB: db, session: e.session}
	ctx, db.cancel = context.WithCancel(ctx)
	if err := f.load(ctx, nil); err != nil {
		db.cancel()
		return err
	}
	if db.options.Anchor != "" {
		go db.advanceAnchor(ctx)
	}
	go db.run(ctx, f)
	return nil
}

// add adds a table, which is read later. The collections of documents are added by DB.Collection.
func (db *DB) add(config Table) {
	t := newTable(config, db.options.Trace)
	db.tables = append(db.tables, t)
	if config.document == "" {
		t.collections[""] = newCollection(db, t, "", store.CollectionSpec{}, listwatch.Description{
			APIVersion: config.APIVersion, Kind: config.Kind, Fields: config.Fields, Epoch: db.epoch,
		})
	}
}

// Source returns the Source of a table, by the name that was passed to Open. It panics if there is
// no such table.
func (db *DB) Source(name string) listwatch.Source { return db.collection(name).cache }

// collection returns the collection of a table that has only one.
func (db *DB) collection(table string) *collection {
	for _, t := range db.tables {
		if t.config.Name == table && t.config.document == "" {
			return t.collections[""]
		}
	}
	panic(fmt.Sprintf("postgres: table %q was not passed to Open", table))
}

// Ready returns nil while the DB follows the tables. After an interruption, it returns an error
// until the tables have been read again.
func (db *DB) Ready() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.err != nil {
		return errors.New("the tables are not followed at the moment")
	}
	return nil
}

// Wait waits until the DB has ended, and returns the reason: the error of the context of Open, or
// [ErrReplaced].
func (db *DB) Wait() error {
	<-db.done
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.err
}

// Close ends the DB and its watches, as the end of the context of Open does.
func (db *DB) Close() error {
	db.cancel()
	<-db.done
	return nil
}

// Stats returns the current counters.
func (db *DB) Stats() Stats {
	db.mu.Lock()
	defer db.mu.Unlock()
	s := db.stats
	s.Version = db.group.Version()
	if written := db.written.version(); s.Version < written {
		s.LagBytes, s.Lag = uint64(written-s.Version)/versionsPerByte, time.Since(db.writtenSince)
	}
	for c := range db.collections() {
		s.Rows += c.cache.Stats().Objects
		s.Hidden += len(c.table.hidden[c.name])
	}
	return s
}

// Version returns the version that the tables have reached.
func (db *DB) Version() listwatch.Version { return db.group.Version() }

// Epoch returns a text that identifies the database and its history. It changes when versions start
// over.
func (db *DB) Epoch() string { return db.epoch }

// Compact drops the history in memory: after that, a watch that starts before the newest version
// fails with [listwatch.Expired].
func (db *DB) Compact() {
	db.mu.Lock()
	defer db.mu.Unlock()
	for c := range db.collections() {
		c.cache.Compact()
	}
}

// collections returns all collections. db.mu or db.feeding must be held.
func (db *DB) collections() iter.Seq[*collection] {
	return func(yield func(*collection) bool) {
		for _, t := range db.tables {
			for _, c := range t.collections {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// run follows the tables until ctx ends. After an interruption it reads them again.
func (db *DB) run(ctx context.Context, f *follower) {
	defer close(db.done)
	for failures := 0; ; failures++ {
		began := time.Now()
		err := f.follow(ctx)
		_ = f.session.Close(ctx) // the connection may be broken
		if time.Since(began) > time.Minute {
			failures = 0
		}
		if ctx.Err() == nil {
			db.options.Trace.Lost(err)
		}
		if f, err = db.recover(ctx, err, f.mayResume(err), failures); err != nil {
			db.end(err)
			return
		}
	}
}

// recover connects, and resumes or reads the tables again. It retries until this succeeds, ctx ends
// or the database was replaced. reason is the error after which this is necessary.
func (db *DB) recover(ctx context.Context, reason error, mayResume bool, failures int) (*follower, error) {
	backoff := listwatch.Backoff{Min: 100 * time.Millisecond, Max: 5 * time.Second}
	for err := reason; ; failures++ {
		db.note(err)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if failures > 0 {
			select {
			case <-time.After(backoff.Delay(failures - 1)):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		var f *follower
		if f, err = db.reopen(ctx, reason, mayResume); err == nil || errors.Is(err, ErrReplaced) {
			db.note(err)
			return f, err
		}
		db.options.Trace.Lost(err)
	}
}

// reopen connects, and resumes or reads the tables again. reason is the error that made this
// necessary.
func (db *DB) reopen(ctx context.Context, reason error, mayResume bool) (*follower, error) {
	conn, err := connect(ctx, db.config, true)
	if err != nil {
		return nil, err
	}
	f := &follower{DB: db, session: conn}
	epoch, err := conn.epoch(ctx)
	switch {
	case err != nil:
	case epoch != db.epoch:
		err = ErrReplaced
	default:
		err = f.restart(ctx, reason, mayResume)
	}
	if err != nil {
		_ = conn.Close(ctx) // return the error of load
		return nil, err
	}
	return f, nil
}

func (db *DB) note(err error) {
	db.mu.Lock()
	db.err = err
	db.mu.Unlock()
}

// end records err, and ends the watches of all tables.
func (db *DB) end(err error) {
	db.note(err)
	db.reads.close()
	db.writes.close()
	db.feeding.Lock()
	defer db.feeding.Unlock()
	for _, t := range db.tables {
		t.failed = true
	}
	for c := range db.collections() {
		c.cache.Fail(nil)
	}
}
